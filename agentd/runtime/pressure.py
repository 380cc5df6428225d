"""Pressure: when the room for state or memory gets scarce, new work is shed before anything accepted is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from agentd.ports.host import Clock, Log
from agentd.ports.store import Pressure

INTERVAL = 2.0
"""Seconds between two looks."""

_CGROUP = Path("/sys/fs/cgroup")
_MEMORY_WARN, _MEMORY_SHED = 0.85, 0.95


class Level(IntEnum):
    """`warn`: low priority is shed. `shed`: no new work at any door."""

    OK = 0
    WARN = 1
    SHED = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """What one look found: the level, its cause (disk, memory) and the bytes that are left there."""

    level: Level
    cause: str = ""
    free_bytes: int = 0


def assess_disk(room: Pressure | None) -> Reading:
    """Under twice what is to be kept free: warn; under it: shed."""
    if room is None or room.free_bytes >= 2 * room.min_free_bytes:
        return Reading(Level.OK)
    level = Level.SHED if room.free_bytes < room.min_free_bytes else Level.WARN
    return Reading(level, "disk", room.free_bytes)


def assess_memory(used: int | None, limit: int | None) -> Reading:
    """Against the memory limit of the cgroup, where there is one."""
    if used is None or not limit:
        return Reading(Level.OK)
    share = used / limit
    level = Level.SHED if share >= _MEMORY_SHED else Level.WARN if share >= _MEMORY_WARN else Level.OK
    return Reading(level, "memory" if level else "", max(0, limit - used))


def cgroup_memory(root: Path = _CGROUP) -> tuple[int | None, int | None]:
    """Used and allowed bytes of our cgroup (v2), None where unknown or unlimited. Page cache does not count as used."""
    try:
        own = (Path("/proc/self/cgroup").read_text().strip().splitlines() or ["0::/"])[-1].rpartition("::")[2]
        folder = root / own.lstrip("/")
        if not (folder / "memory.max").exists():
            folder = root
        limit = (folder / "memory.max").read_text().strip()
        if limit == "max":
            return None, None
        used = int((folder / "memory.current").read_text())
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):
                used -= int(line.split()[1])
        return used, int(limit)
    except (OSError, ValueError):
        return None, None


class Gauge:
    """Looks every 2 s and tells changes; `level` is read at every door."""

    def __init__(self, room: Callable[[], Pressure | None] | None, clock: Clock, log: Log) -> None:
        self._room, self._clock, self._log = room, clock, log
        self.level = Level.OK

    def look(self) -> Level:
        """Assess now, log a change."""
        disk = assess_disk(self._room() if self._room is not None else None)
        memory = assess_memory(*cgroup_memory())
        worst = max(disk, memory, key=lambda r: r.level)
        if worst.level != self.level:
            event = ("pressure.cleared", "pressure.warn", "pressure.shed")[worst.level]
            self._log(event, level="warn" if worst.level else "info", cause=worst.cause, free_bytes=worst.free_bytes)
            self.level = worst.level
        return self.level

    async def relief(self) -> None:
        """Return when nothing is shed: at once, but under pressure."""
        while self.level is Level.SHED:
            await self._clock.sleep(INTERVAL)

    async def watch(self) -> None:
        """Look for ever."""
        while True:
            self.look()
            await self._clock.sleep(INTERVAL)
