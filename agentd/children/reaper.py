"""One reaper for the whole instance: every exited child is waited for once, by pid.

asyncio's child watchers are not used for our children: as a subreaper (and often PID 1) the supervisor also inherits
orphans, which nobody else would wait for.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import OrderedDict

_REMEMBERED = 1024
"""Exit codes kept for pids nobody asked for yet: a child may end before its pid is known here."""


class Reaper:
    """Waits for children on SIGCHLD. An exit code is the process's, or minus the signal that ended it."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._early: OrderedDict[int, int] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to reap on `loop`, which must run in the main thread."""
        self._loop = loop
        loop.add_signal_handler(signal.SIGCHLD, self.reap)
        self.reap()

    def stop(self) -> None:
        """Reap what is there and leave SIGCHLD alone."""
        if self._loop is not None:
            self.reap()
            self._loop.remove_signal_handler(signal.SIGCHLD)
            self._loop = None

    def exited(self, pid: int) -> asyncio.Future[int]:
        """Resolves to the exit code of `pid` once it is gone; the zombie is gone then too."""
        assert self._loop is not None
        future = self._waiting.get(pid)
        if future is None:
            future = self._loop.create_future()
            if pid in self._early:
                future.set_result(self._early.pop(pid))
            else:
                self._waiting[pid] = future
        return future

    def reap(self) -> None:
        """Wait for every child that has exited. Looks first and waits by pid, so no status is taken unseen."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            pid, status = os.waitpid(found.si_pid, os.WNOHANG)
            if pid == 0:
                return
            self._ended(pid, os.waitstatus_to_exitcode(status))

    def _ended(self, pid: int, code: int) -> None:
        future = self._waiting.pop(pid, None)
        if future is not None:
            if not future.done():
                future.set_result(code)
            return
        self._early[pid] = code
        while len(self._early) > _REMEMBERED:
            self._early.popitem(last=False)
