"""The first code of a child: read the work, bound the process, run the turn."""

from __future__ import annotations

import contextlib
import os
import resource
import socket

from agentd.children import frames

_READ = 256 << 10


def child(sock: socket.socket) -> None:
    """Read the `work` frame from `sock` and run it. Returns when the turn is over or the supervisor is gone."""
    decoder = frames.Decoder()
    received: list[frames.Frame] = []
    while not received:
        data = sock.recv(_READ)
        if not data:
            return
        received = decoder.feed(data)
    work = received[0]
    os.environ.update(work.get("env") or {})
    _bound(work.get("rlimits") or {})
    from agentd.turn.main import run

    run(sock, work)


def _bound(limits: dict[str, int]) -> None:
    for name, kind in (("memory", resource.RLIMIT_AS), ("cpu", resource.RLIMIT_CPU)):
        if limits.get(name):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(kind, (int(limits[name]), int(limits[name])))
