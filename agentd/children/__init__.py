"""Child processes: the zygote that forks them, the frames they speak, how they are reaped and stopped."""
