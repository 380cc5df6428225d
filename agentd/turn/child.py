"""A child's whole life: say hello, be told the work, do it."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Mapping
from typing import Any

from agentd.children.frames import Decoder, encode

_READ = 256 << 10


def child(sock: socket.socket) -> None:
    """Serve one turn over `sock`; returns when it is done, or when the supervisor is gone."""
    sock.sendall(encode({"t": "hello", "pid": os.getpid()}))
    decoder = Decoder()
    while True:
        data = sock.recv(_READ)
        if not data:
            return
        if frames := decoder.feed(data):
            break
    work = frames[0]
    # The environment was scrubbed at the fork; what is given back is how to dial out.
    os.environ.update(work.get("env") or {})
    from agentd.turn.main import run

    limit(work.get("rlimits") or {})
    run(sock, work, early=frames[1:], decoder=decoder)


def limit(limits: Mapping[str, Any]) -> None:
    """Bound this process: `memory` in bytes of address space, `cpu` in seconds. Over the first an allocation fails,
    over the second the kernel ends the process.
    """
    for name, kind in (("memory", resource.RLIMIT_AS), ("cpu", resource.RLIMIT_CPU)):
        if value := limits.get(name):
            _, most = resource.getrlimit(kind)
            wanted = max(1, round(value))
            wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.setrlimit(kind, (wanted, most))
