"""What a failed request means; pure. The `data` read here is what :mod:`agentd.mcp.http` put there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentd.mcp.records import McpFault

UNSUPPORTED_VERSION = -32022
REQUEST_TIMEOUT = -32001
CONNECTION_CLOSED = -32000
HEADER_MISMATCH = -32020
_ASK_ANEW = (UNSUPPORTED_VERSION, HEADER_MISMATCH)
"""Refusals of what we knew of the server from before, made before anything was done."""
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


def fault_of(server: str, rpc_code: int, message: str, data: Any) -> McpFault:
    """The fault behind a JSON-RPC error: what to tell, whether to try again, whether the session is gone."""
    told = data if isinstance(data, dict) else {}
    status = told.get("http_status", 0)
    # The SDK speaks of its own troubles in JSON-RPC errors too, without data.
    of_sdk = not told and rpc_code in (REQUEST_TIMEOUT, CONNECTION_CLOSED)
    transport = "fault" in told or of_sdk
    hint = "; check its auth or headers" if status in (401, 403) else ""
    return McpFault(
        f"MCP server {server!r}: {message}{hint}",
        server=server,
        rpc_code=0 if transport or not told.get("answered", True) else rpc_code,
        http_status=status,
        retry=transport or status in _TRANSIENT,
        session_lost=rpc_code in _ASK_ANEW or session_lost(message, told),
    )


def session_lost(message: str, data: dict[str, Any]) -> bool:
    """Whether the server refused a request because it does not know our session.

    A 404 says so by the standard. Servers also say it by 400, 401, 500 or 503; there their words decide, and a 400 or
    401 without words may be it too.
    """
    status = data.get("http_status", 0)
    if not status or not data.get("session"):
        return False
    if status == 404 or "session" in message.lower():
        return True
    return status in (400, 401) and not data.get("answered")


def is_unreachable(data: Any) -> bool:
    """Whether nothing was reached at all, so that another question is in vain."""
    return isinstance(data, dict) and data.get("fault") in ("ConnectError", "ConnectTimeout")


def modern_version(rpc_code: int, data: Any, ours: Sequence[str]) -> str:
    """The newest stateless revision that a refusal names and we speak, "" when there is none."""
    named = data.get("supported") if rpc_code == UNSUPPORTED_VERSION and isinstance(data, dict) else None
    shared = [v for v in ours if isinstance(named, list) and v in named]
    return shared[-1] if shared else ""
