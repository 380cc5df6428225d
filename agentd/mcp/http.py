"""The HTTP client beneath the SDK: each fault stays the fault of one request.

The SDK's transport ends the whole connection, and cancels the task that opened it, when a POST raises. Here a POST
never raises: what went wrong comes back as a JSON-RPC error whose `data` says more (`http_status`, `session`,
`fault`), which the SDK hands to the one waiting caller.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any

import httpx2

from agentd.ports.auth import Auth, OutboundRequest

MAX_BODY = 16 << 20
"""Bytes of one JSON answer."""
SESSION = "mcp-session-id"
_DECODED = {b"content-encoding", b"content-length", b"transfer-encoding"}


class BodyTooLarge(Exception):
    """An answer exceeds :data:`MAX_BODY`."""


class SoftClient(httpx2.AsyncClient):
    """An HTTP client of one server. `parting` spares a server that lost our session the farewell."""

    def __init__(
        self,
        *,
        headers: Mapping[str, str],
        tls: ssl.SSLContext,
        auth: Auth | None = None,
        proxy: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        read_timeout: float = 900.0,
    ) -> None:
        super().__init__(
            headers=dict(headers),
            verify=tls,
            proxy=proxy,
            transport=transport,
            trust_env=False,
            timeout=httpx2.Timeout(10.0, read=read_timeout, connect=5.0),
        )
        self._scheme = auth
        self.parting = True

    async def send(self, request: httpx2.Request, **kw: Any) -> httpx2.Response:
        """Send `request`; for a POST and a DELETE, whatever happens is an answer."""
        if request.method == "DELETE":
            return await self._farewell(request, **kw)
        if request.method != "POST":
            return await self._authorized(request, **kw)
        if b'"method":"notifications/' in request.content[:120]:
            # The SDK sends notifications in line: one that hangs would hold up every request behind it.
            request.extensions["timeout"] = {"connect": 5.0, "read": 5.0, "write": 5.0, "pool": 5.0}
        try:
            return await self._readable(await self._authorized(request, **kw))
        except Exception as e:
            return _answer(request, 503, _reason(e), {"fault": type(e).__name__})

    async def _farewell(self, request: httpx2.Request, **kw: Any) -> httpx2.Response:
        if not self.parting:
            return httpx2.Response(405, request=request)
        request.extensions["timeout"] = {"connect": 0.5, "read": 0.5, "write": 0.5, "pool": 0.5}
        return await self._authorized(request, **kw)

    async def _authorized(self, request: httpx2.Request, **kw: Any) -> httpx2.Response:
        if self._scheme is None:
            return await super().send(request, **kw)
        for last in (False, True):
            out = OutboundRequest(
                method=request.method, url=str(request.url), headers=request.headers, body=request.content
            )
            request.headers.update(await self._scheme.headers(out))
            response = await super().send(request, **kw)
            if last or response.status_code != 401:
                break
            if not await self._scheme.on_unauthorized(out, response.headers.get("www-authenticate", "")):
                break
            await response.aclose()
        return response

    async def _readable(self, response: httpx2.Response) -> httpx2.Response:
        """`response` read as far as it is one JSON document, so that a torn or huge one is found here."""
        status, request = response.status_code, response.request
        is_json = response.headers.get("content-type", "").lower().startswith("application/json")
        if status < 400 and not is_json:
            return response
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BODY:
                    raise BodyTooLarge(f"the answer exceeds {MAX_BODY} bytes")
        finally:
            await response.aclose()
        if status >= 400:
            return _refusal(request, status, bytes(body))
        headers = [(k, v) for k, v in response.headers.raw if k.lower() not in _DECODED]
        return httpx2.Response(status, headers=headers, content=bytes(body), request=request)


def _refusal(request: httpx2.Request, status: int, body: bytes) -> httpx2.Response:
    """An HTTP error as the JSON-RPC error it holds, or as one of ours, with its status kept."""
    data: dict[str, Any] = {"http_status": status, "session": SESSION in request.headers, "answered": False}
    try:
        error = json.loads(body)["error"]
        code, message = int(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return _answer(request, status, f"HTTP {status}", data)
    if isinstance(inner := error.get("data"), dict):
        data = {**inner, **data}
    return _answer(request, status, message, {**data, "answered": True}, code)


def _answer(
    request: httpx2.Request, status: int, message: str, data: dict[str, Any], code: int = -32000
) -> httpx2.Response:
    error = {"code": code, "message": message, "data": data}
    return httpx2.Response(status, request=request, json={"jsonrpc": "2.0", "id": None, "error": error})


def _reason(error: Exception) -> str:
    """Words for `error`; many transport errors have none of their own."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
