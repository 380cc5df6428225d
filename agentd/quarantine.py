"""Run the code of plugins while they load, and keep its noise from where our words go.

stdout is the result and stderr is one JSON object a line: what a plugin prints becomes an event that names it. The one
that takes long is named while it does. Nothing is left behind, above all no thread: the process may be about to fork.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

SLOW = 1.5
"""Seconds after which a plugin that is still loading is named on stderr."""

SHOWN = 300
"""Characters shown of what a plugin printed."""


class Quarantine:
    """Who is loading now, and what it printed."""

    def __init__(self, descriptor: int | None) -> None:
        self._now = ""
        self._printed: list[tuple[str, str]] = []
        self._descriptor = descriptor
        self.aside = _Aside()
        self._timer = threading.Timer(SLOW, self._slow)
        self._timer.daemon = True
        self._timer.start()

    def turn_to(self, plugin: str) -> None:
        """From now on it is `plugin` that prints and takes time."""
        if self._now and (text := self._gathered().strip()):
            self._printed.append((self._now, text))
        self._now = plugin

    def close(self) -> None:
        """Tell what was printed; whoever kept our stand-in for stdout now prints to stderr."""
        self._timer.cancel()
        self._timer.join()
        self.turn_to("")
        self.aside.gathered = None
        for plugin, text in self._printed:
            _tell(f"{plugin} printed while it loaded: {text[:SHOWN]}")

    def _gathered(self) -> str:
        for stream in (sys.stdout, sys.__stdout__):
            if stream and not stream.closed:
                stream.flush()
        data = bytes(self.aside.gathered or b"")
        self.aside.gathered = bytearray()
        if self._descriptor is not None:
            size = os.lseek(self._descriptor, 0, os.SEEK_CUR)
            data += os.pread(self._descriptor, min(size, 1 << 16), 0)
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        return data.decode(errors="replace")

    def _slow(self) -> None:
        if self._now:
            _tell(f"{self._now} is slow to load; waiting for it")


class _Aside(io.RawIOBase):
    """What plugins take for stdout."""

    def __init__(self) -> None:
        self.gathered: bytearray | None = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        content = bytes(data)
        if self.gathered is not None:
            self.gathered += content
        elif sys.stderr:
            sys.stderr.write(content.decode(errors="replace"))
        return len(content)


@contextlib.contextmanager
def quarantine() -> Iterator[Quarantine]:
    """Both `sys.stdout` and descriptor 1 lead aside; an interrupt ends the process, for nothing has begun yet.

    Without the latter Ctrl-C would look like the fault of the plugin that is being imported.
    """
    with contextlib.ExitStack() as stack:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            stack.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_DFL))
        inside = Quarantine(_divert(stack))
        stack.callback(inside.close)
        stack.enter_context(contextlib.redirect_stdout(io.TextIOWrapper(io.BufferedWriter(inside.aside), "utf-8")))
        stack.callback(inside.turn_to, "")
        yield inside


def _divert(stack: contextlib.ExitStack) -> int | None:
    """Let descriptor 1 lead to a file in memory until `stack` unwinds; None where it cannot be."""
    try:
        if sys.stdout:
            sys.stdout.flush()
        kept = os.dup(1)
    except (OSError, ValueError):
        return None
    stack.callback(os.close, kept)
    memory = os.memfd_create("agentd-plugins")
    stack.callback(os.close, memory)
    stack.callback(os.dup2, kept, 1)
    if sys.stdout:
        stack.callback(sys.stdout.flush)
    os.dup2(memory, 1)
    return memory


def _tell(message: str) -> None:
    if sys.stderr:
        line = json.dumps({"event": "config.warning", "path": "plugins", "msg": message}, separators=(",", ":"))
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
