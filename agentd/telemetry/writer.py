"""Carries lines to a descriptor without ever blocking or failing the caller.

A log reader that stops reading fills the pipe (64 KiB), and the next write blocks for as long as it likes: inside the
event loop that would stop heartbeats, lease renewals and the drain. So one thread writes; it is started by the first
line (never before the process has forked what must be forked single-threaded), what waits for it is bounded, and
what does not fit is dropped and counted.
"""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

CAPACITY = 8 << 20
"""Characters that may wait for a slow reader."""
TICK = 1.0
"""Seconds between two looks at `idle`."""
_CHUNK = 1 << 16
_GONE = {errno.EPIPE, errno.EBADF, errno.ECONNRESET, errno.ENXIO}


class LineWriter:
    """One writer of one descriptor, safe to call from any thread.

    `dropped` counts every line lost so far. `notice`, if set, makes the line that tells of lines lost since the last
    notice. `idle`, if set, is asked every second for text to write while no line comes, until it has none: how a
    progress display moves.
    """

    def __init__(self, fd: int = 2, *, capacity: int = CAPACITY) -> None:
        self.fd = fd
        self.dropped = 0
        self.notice: Callable[[int], str] | None = None
        self.idle: Callable[[], str] | None = None
        self._capacity = capacity
        self._lines: deque[str] = deque()
        self._waiting = 0
        self._untold = 0
        self._pause: float | None = None
        self._busy = False
        self._torn = False
        self._gone = False
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()  # reentrant: a signal handler may log while its thread is inside `put`
        self._wake = threading.Condition(self._lock)
        self._settled = threading.Condition(self._lock)

    def put(self, line: str) -> None:
        """Hand over `line`, its newline included. Never waits for the reader, never raises."""
        with self._lock:
            if self._gone or self._waiting + len(line) > self._capacity:
                self.dropped += 1
                self._untold += 1
                return
            self._lines.append(line)
            self._waiting += len(line)
            if not self._busy:
                self._busy = True
                self._wake.notify()
            if self._thread is None:
                self._start()

    def flush(self, timeout: float = 1.0) -> bool:
        """Wait at most `timeout` seconds until everything handed over is written or lost; False if it is not."""
        with self._lock:
            return self._settled.wait_for(lambda: not self._busy, timeout)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="agentd-log", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # No thread to be had (a limit, or the interpreter ends): the next line tries again.
            self._thread, self._busy = None, False

    def _run(self) -> None:
        while True:
            text = self._next()
            if text:
                self._write(text.encode("utf-8", "replace"))

    def _next(self) -> str:
        """The next text to write, at most about one chunk; waits for it."""
        with self._lock:
            if not self._lines:
                self._busy = False
                self._settled.notify_all()
                self._wake.wait(self._pause)
            lines = self._take()
            untold = 0
            if lines and self.notice:
                untold, self._untold = self._untold, 0
        if untold and self.notice:
            lines.append(self.notice(untold))
        if lines or self.idle is None:
            self._pause = None if self.idle is None else TICK
            return "".join(lines)
        text = self.idle()
        self._pause = TICK if text else None
        return text

    def _take(self) -> list[str]:
        lines: list[str] = []
        size = 0
        while self._lines and size < _CHUNK:
            line = self._lines.popleft()
            lines.append(line)
            size += len(line)
        self._waiting -= size
        return lines

    def _write(self, data: bytes) -> None:
        if self._torn:
            # A line was cut short by a failing write: the next one shall not continue it.
            data = b"\n" + data
        view = memoryview(data)
        while view:
            try:
                done = os.write(self.fd, view)
            except BlockingIOError:
                # Somebody made the shared description non-blocking; waiting is this thread's business alone.
                self._await_room()
                continue
            except OSError as e:
                self._lose(bytes(view).count(b"\n"), for_good=e.errno in _GONE)
                return
            view = view[done:]
            self._torn = bool(view)

    def _await_room(self) -> None:
        try:
            poll = select.poll()
            poll.register(self.fd, select.POLLOUT)
            poll.poll(1000)
        except OSError:
            time.sleep(0.1)

    def _lose(self, lines: int, *, for_good: bool) -> None:
        """A write failed. A full disk may have room again later; a reader that went away does not come back."""
        with self._lock:
            if for_good:
                self._gone = True
                lines += len(self._lines)
                self._lines.clear()
                self._waiting = 0
            self.dropped += lines
            self._untold += lines
