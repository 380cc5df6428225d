"""The child's whole life, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from agentd.children.frames import Decoder, encode

_MAIN = "import socket, sys; from agentd.turn.child import child; child(socket.socket(fileno=int(sys.argv[1])))"


class Process:
    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(30)
        argv = [sys.executable, "-c", _MAIN, str(theirs.fileno())]
        self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
        theirs.close()
        self._decoder, self._read = Decoder(), list[dict[str, Any]]()

    def send(self, *frames: dict[str, Any]) -> None:
        self.sock.sendall(b"".join(map(encode, frames)))

    def read(self, kind: str) -> dict[str, Any]:
        """The next frame of `kind`; what comes before it is passed over."""
        while True:
            while self._read:
                frame = self._read.pop(0)
                if frame["t"] == kind:
                    return frame
            data = self.sock.recv(65536)
            assert data, f"the child ended without {kind}"
            self._read += self._decoder.feed(data)


@pytest.fixture
def process() -> Iterator[Process]:
    process = Process()
    yield process
    process.sock.close()
    process.process.wait(30)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A model that accepts and never answers."""
    server = socket.create_server(("127.0.0.1", 0))
    yield server
    server.close()


def work(port: int, **more: Any) -> dict[str, Any]:
    model = {"model": "m", "endpoints": [{"url": f"http://127.0.0.1:{port}/v1"}]}
    return {"t": "work", "run": "r", "step": "s", "turn": "t", "instruction": "x", "model": model, **more}


def test_hello_comes_first(process: Process) -> None:
    assert process.read("hello")["pid"] == process.process.pid


def test_a_cancel_that_came_with_the_work_is_heard(process: Process) -> None:
    process.send(work(9), {"t": "cancel", "reason": "too late"})
    result = process.read("result")
    assert (result["status"], result["err"]["message"]) == ("cancelled", "too late")
    assert process.process.wait(10) == 0


def test_sigterm_cancels_a_turn_that_waits_for_the_model(process: Process, silent: socket.socket) -> None:
    process.send(work(silent.getsockname()[1]))
    connection, _ = silent.accept()
    os.kill(process.process.pid, signal.SIGTERM)
    assert process.read("result")["status"] == "cancelled"
    connection.close()
    assert process.process.wait(10) == 0


def test_a_supervisor_that_is_gone_ends_the_process(process: Process, silent: socket.socket) -> None:
    process.send(work(silent.getsockname()[1]))
    connection, _ = silent.accept()
    process.sock.close()
    assert process.process.wait(10) == 0
    connection.close()


def test_limits_of_the_process_are_set(process: Process, silent: socket.socket) -> None:
    process.send(work(silent.getsockname()[1], rlimits={"memory": 8 << 30, "cpu": 3600}))
    connection, _ = silent.accept()
    with open(f"/proc/{process.process.pid}/limits", encoding="ascii") as f:
        found = {line[:26].strip(): line[26:].split()[0] for line in f}
    assert (found["Max address space"], found["Max cpu time"]) == (str(8 << 30), "3600")
    connection.close()
