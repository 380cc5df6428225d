"""A child's whole life: say hello, be told the work, do it."""

from __future__ import annotations

import os
import socket

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
        frames = decoder.feed(data)
        if frames:
            break
    from agentd.turn.main import run

    run(sock, frames[0], early=frames[1:], decoder=decoder)
