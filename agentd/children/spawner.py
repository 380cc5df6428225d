"""The supervisor's side of the zygote: asks it for children, and speaks frames with each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator

from agentd.children import frames, zygote
from agentd.children.reaper import Reaper
from agentd.errors import ChildDied

ENTRY = "agentd.turn.child:child"
WARM = "agentd.turn.warm:warm"
_READ = 256 << 10


class Child:
    """A running child: its pid, its frames and its end."""

    def __init__(self, pid: int, sock: socket.socket, exited: asyncio.Future[int]) -> None:
        self.pid = pid
        self.exited = exited
        self._sock = sock
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None

    async def open(self) -> None:
        """Connect the streams; once, before anything else."""
        self._reader, self._writer = await asyncio.open_unix_connection(sock=self._sock)

    def send(self, frame: frames.Frame) -> None:
        """Queue one frame. A child that is gone is no error here: its end is seen by whoever reads."""
        assert self._writer is not None
        if not self._writer.is_closing():
            self._writer.write(frames.encode(frame))

    async def frames(self) -> AsyncIterator[frames.Frame]:
        """The child's frames until it closes its end. Raises :class:`~agentd.children.frames.FrameError`."""
        assert self._reader is not None
        decoder = frames.Decoder()
        while True:
            try:
                data = await self._reader.read(_READ)
            except ConnectionError:
                return
            if not data:
                return
            for frame in decoder.feed(data):
                yield frame

    def signal(self, number: int) -> None:
        """Send a signal to the child's process group; a child that is gone is no error."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def stop(self, grace: float) -> int:
        """The kill ladder: SIGTERM, at most `grace` seconds, SIGKILL to the group. Returns the exit code."""
        if not self.exited.done():
            self.signal(signal.SIGTERM)
            await asyncio.wait([self.exited], timeout=grace)
        if not self.exited.done():
            self.signal(signal.SIGKILL)
        code = await self.exited
        # Whatever the child itself started ends with it.
        self.signal(signal.SIGKILL)
        self.close()
        return code

    def close(self) -> None:
        """Close our end of the frames."""
        if self._writer is not None:
            self._writer.close()


class Spawner:
    """Starts children through the zygote.

    :meth:`fork` must be called while the process has one thread and no loop, and is quick: for a job. :meth:`later`
    executes a fresh zygote when the first child is asked for: for a daemon, which may idle for days before. One that
    died is replaced by a freshly executed one too, for a process that has threads never forks.
    """

    def __init__(self, control: socket.socket | None, pid: int, entry: str, warm: str) -> None:
        self._control, self.pid = control, pid
        self._entry, self._warming = entry, warm
        self._pending: deque[asyncio.Future[int]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reaper: Reaper | None = None
        self._live: set[Child] = set()
        self._warm = False

    @classmethod
    def fork(cls, entry: str = ENTRY, warm: str = WARM) -> Spawner:
        """Fork the zygote from this process. `entry` and `warm` are named ``module:function``."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            zygote.serve(theirs, supervisor, zygote.load(warm), zygote.load(entry))
        theirs.close()
        return cls(ours, pid, entry, warm)

    @classmethod
    def later(cls, entry: str = ENTRY, warm: str = WARM) -> Spawner:
        """No zygote yet."""
        return cls(None, 0, entry, warm)

    def _execute(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fd = os.dup(theirs.fileno())
        theirs.close()
        words = [str(fd), str(os.getpid()), self._entry, self._warming]
        argv = [sys.executable, "-m", "agentd.children.zygote", *words]
        kept = {k: v for k, v in os.environ.items() if k in zygote.KEPT or k.startswith("PYTHON")}
        try:
            os.set_inheritable(fd, True)
            self.pid = os.posix_spawn(sys.executable, argv, kept)
        finally:
            os.close(fd)
        self._control = ours

    def warm(self, **how: bool) -> None:
        """Have the zygote import what a turn needs, while we do something else; `how` is for its warm function."""
        if not self._warm and self._control is not None:
            self._warm = True
            with contextlib.suppress(OSError):
                self._control.send(json.dumps({"t": "warm", "how": how}).encode())

    def attach(self, loop: asyncio.AbstractEventLoop, reaper: Reaper) -> None:
        """Use `loop` and `reaper` from now on."""
        self._loop, self._reaper = loop, reaper
        if self._control is not None:
            self._control.setblocking(False)
            loop.add_reader(self._control.fileno(), self._on_reply)

    @property
    def live(self) -> frozenset[Child]:
        """The children that have not ended."""
        return frozenset(self._live)

    async def spawn(self) -> Child:
        """A new child, ready to be sent its work. Raises :class:`agentd.errors.ChildDied`."""
        assert self._loop is not None and self._reaper is not None
        ours, theirs = socket.socketpair()
        try:
            future = self._request(theirs)
        finally:
            theirs.close()
        try:
            pid = await future
        except BaseException:
            ours.close()
            raise
        child = Child(pid, ours, self._reaper.exited(pid))
        self._live.add(child)
        child.exited.add_done_callback(lambda _: self._live.discard(child))
        await child.open()
        return child

    def _request(self, theirs: socket.socket) -> asyncio.Future[int]:
        assert self._loop is not None
        if self._control is None:
            self._replace()
        assert self._control is not None
        for attempt in (1, 2):
            try:
                socket.send_fds(self._control, [b'{"t":"spawn"}'], [theirs.fileno()])
                break
            except OSError as e:
                if attempt == 2:
                    raise ChildDied(f"cannot start a child: {e}") from e
                self._replace()
        future: asyncio.Future[int] = self._loop.create_future()
        self._pending.append(future)
        return future

    def _replace(self) -> None:
        assert self._loop is not None and self._reaper is not None
        self.close()
        self._execute()
        self._warm = False
        self.attach(self._loop, self._reaper)
        self.warm()

    def _on_reply(self) -> None:
        assert self._control is not None
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            assert self._loop is not None
            self._loop.remove_reader(self._control.fileno())
            while self._pending:
                self._resolve(ChildDied("the process that starts children died"))
            self._control.close()
            return
        reply = json.loads(data)
        self._resolve(
            int(reply["pid"]) if reply["t"] == "spawned" else ChildDied(f"cannot start a child: {reply['msg']}")
        )

    def _resolve(self, outcome: int | ChildDied) -> None:
        future = self._pending.popleft()
        if future.done():
            if isinstance(outcome, int):
                # Nobody waits any more: the child meets a closed socket and ends; make sure of it.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(outcome, signal.SIGKILL)
        elif isinstance(outcome, int):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    def kill_all(self) -> None:
        """SIGKILL every child's group at once (a second signal)."""
        for child in self._live:
            child.signal(signal.SIGKILL)

    def close(self) -> None:
        """Let the zygote go. Children that live stay ours."""
        if self._control is None:
            return
        if self._loop is not None and self._control.fileno() >= 0:
            self._loop.remove_reader(self._control.fileno())
        self._control.close()
