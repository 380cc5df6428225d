"""Descriptors 0, 1 and 2 always belong to the standard streams.

A process started with one of them closed (`2>&-`) would give its number to the first file it opens, a database or a
socket, and everything meant for a person would be written into that.
"""

from __future__ import annotations

import os
import sys


def hold_standard_descriptors() -> frozenset[int]:
    """Open the null device on each standard descriptor that is closed; the numbers of those that were.

    To be called before anything is opened. 1 among them means that no result can be delivered.
    """
    closed = set()
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is taken, and those below are in use by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY if fd == 0 else os.O_WRONLY), True)
            closed.add(fd)
    for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            # `print(…, file=None)` goes to stdout: a message for a person would become part of the result.
            stream = os.fdopen(fd, "w" if fd else "r", encoding="utf-8", errors="backslashreplace", closefd=False)
            setattr(sys, name, stream)
    return frozenset(closed)
