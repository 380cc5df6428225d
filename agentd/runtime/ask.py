"""Asking the daemon that holds a state directory; blocking, for the command line, and quick to import."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentd.errors import UsageError

POINTER = "control"
"""The file in a state directory that says where its control socket is."""


def ask(state: Path, op: str, args: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
    """One operation of the daemon that holds `state`; blocking, for the command line. Returns the reply.

    Raises UsageError when no daemon answers there.
    """
    pointer = state / POINTER
    try:
        path = pointer.read_text()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            s.connect(path)
            s.sendall(json.dumps({"op": op, "args": dict(args)}).encode() + b"\n")
            with s.makefile("rb") as f:
                line = f.readline()
    except TimeoutError as e:
        raise UsageError(f"the daemon of {state} gave no answer in {timeout:g} s") from e
    except (OSError, ValueError) as e:
        raise UsageError(f"no daemon runs on {state}: start one with this configuration, or name its --config") from e
    if not line:
        raise UsageError(f"the daemon of {state} hung up")
    reply: dict[str, Any] = json.loads(line)
    return reply
