"""The private control socket: how `agentd run|status|cancel|signal …` reach the daemon of a state directory.

A unix socket, 0600, for the same uid only. One JSON object a line each way: ``{"op": …, "args": {…}}`` is answered by
``{"ok": true, "value": …}`` or ``{"ok": false, "error": {code, message, fields}, "exit": n}``; a connection may ask
again. Socket paths hold 107 bytes, so the socket lives in ``$XDG_RUNTIME_DIR/agentd/<hash>.sock`` where there is such
a directory, else beside the state, and its path is written to ``<state>/control`` for clients to find.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from agentd.errors import AgentdError, UsageError, exit_code
from agentd.ports.host import Log
from agentd.runtime.ask import POINTER

Operate = Callable[[str, dict[str, Any]], Awaitable[Any]]
_MAX_LINE = 16 << 20
_SUN_PATH = 107


def socket_path(state: Path, environ: Mapping[str, str]) -> Path:
    """Where the socket of the state directory `state` belongs. Raises UsageError when no path is short enough."""
    name = hashlib.sha256(os.fsencode(state.resolve())).hexdigest()[:16] + ".sock"
    runtime = environ.get("XDG_RUNTIME_DIR")
    choices = [Path(runtime) / "agentd" / name] if runtime and Path(runtime).is_dir() else []
    for path in [*choices, state / "control.sock"]:
        if len(os.fsencode(path)) <= _SUN_PATH:
            return path
    raise UsageError(f"no path short enough for the control socket: set XDG_RUNTIME_DIR ({state} is too long)")


class Control:
    """Serves operations on the control socket until closed."""

    def __init__(self, state: Path, environ: Mapping[str, str], operate: Operate, log: Log) -> None:
        self._state, self._operate, self._log = state, operate, log
        self.path = socket_path(state, environ)
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        """Listen. A socket left by a dead daemon is replaced: the store's lock says that nobody lives here."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        old = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self.path, limit=_MAX_LINE)
        finally:
            os.umask(old)
        pointer = self._state / POINTER
        pointer.write_text(str(self.path))
        pointer.chmod(0o600)

    async def close(self) -> None:
        """Stop listening and hang up."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._clients):
                writer.close()
            with contextlib.suppress(OSError):
                self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            if _peer_uid(writer) not in (os.geteuid(), 0):
                return
            while line := await reader.readline():
                writer.write(await self._answer(line))
                await writer.drain()
        except (ConnectionError, ValueError, asyncio.LimitOverrunError):
            pass  # the client is gone, or sent a line no client of ours sends
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _answer(self, line: bytes) -> bytes:
        try:
            request = json.loads(line)
            reply = {"ok": True, "value": await self._operate(str(request["op"]), dict(request.get("args") or {}))}
        except AgentdError as e:
            reply = {"ok": False, "error": e.to_data(), "exit": exit_code(e)}
        except (ValueError, KeyError, TypeError) as e:
            reply = {"ok": False, "error": {"code": "usage", "message": f"not a request: {e}", "fields": {}}, "exit": 2}
        return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _peer_uid(writer: asyncio.StreamWriter) -> int:
    sock = writer.get_extra_info("socket")
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
