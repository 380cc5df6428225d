"""`http`: one request through the egress guard, no redirects, no cookies, no proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentd import net
from agentd.engine.decision import Done, Failed, Outcome
from agentd.runtime.steps.references import resolved

if TYPE_CHECKING:
    import httpx

    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call
    from agentd.runtime.runs import Performer

MAX_BODY = 16 << 20
"""Bytes of one answer."""
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONNECT = 10.0


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kind of this family."""
    steps = HttpSteps(instance)
    instance.steps.on_close(steps.close)
    return {"http": steps.request}


class HttpSteps:
    """Two pools: one that dials public addresses only, one for steps that may dial private ones."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def request(self, call: Call) -> Outcome:
        """``{status, ok, headers, body, json}``; a status that is not expected fails the step."""
        fields = resolved(call)
        client = await self._client(fields["allow_private"])
        import httpx

        from agentd.security.egress import EgressRefused

        host = urlsplit(fields["url"]).hostname or "?"
        left = None if call.deadline is None else max(0.001, call.deadline - self._instance.clock.monotonic())
        try:
            request = _build(client, fields, call.key, left)
            response = await client.send(request, stream=True)
            try:
                body = await _read(response)
            finally:
                await response.aclose()
        except EgressRefused as refused:
            return Failed(refused.code, refused.message, retry=False)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError, TypeError) as error:
            return Failed("http", f"the request to {host} cannot be made: {error}", retry=False)
        except httpx.HTTPError as error:
            return Failed("http", f"{fields['method']} {host}: {str(error) or type(error).__name__}")
        if not expected(fields["expect"], response.status_code):
            message = f"{fields['method']} {host} was answered with {response.status_code}"
            transient = response.status_code in _TRANSIENT
            return Failed("http", message, retry=transient, fields={"status": response.status_code})
        return Done(_output(response, body))

    async def _client(self, allow_private: bool) -> httpx.AsyncClient:
        if allow_private not in self._clients:
            tls_ca = self._instance.document.security.tls_ca
            trust = await asyncio.to_thread(_prepare, tls_ca, self._instance.host.environ.get("SSL_CERT_FILE"))
            self._clients.setdefault(allow_private, _client(trust, allow_private))
        return self._clients[allow_private]

    async def close(self) -> None:
        """Let the connections go."""
        for client in self._clients.values():
            await client.aclose()


def _prepare(tls_ca: str | None, cert_file: str | None) -> Any:
    """What takes long enough to stall a loop: the imports, and the roots."""
    net.warm()
    return net.tls_context(tls_ca, cert_file)


def _client(trust: Any, allow_private: bool) -> httpx.AsyncClient:
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    from agentd import __version__
    from agentd.security.egress import transport

    return httpx.AsyncClient(
        transport=transport(verify=trust, allow_private=allow_private),
        trust_env=False,
        # The pool serves every run: what one server gives to one run is not another's to send.
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        headers={"user-agent": f"agentd/{__version__}"},
    )


def _build(client: httpx.AsyncClient, fields: Mapping[str, Any], key: str, left: float | None) -> httpx.Request:
    import httpx

    url = httpx.URL(fields["url"])
    if query := _query(fields["query"]):
        url = url.copy_merge_params(query)
    headers = {name: to_text(value) for name, value in fields["headers"].items() if value is not None}
    if idempotency := fields["idempotency"]:
        headers["Idempotency-Key" if idempotency is True else idempotency] = key
    content: bytes | None = None
    if fields["json"] is not None:
        content = json.dumps(fields["json"], ensure_ascii=False, separators=(",", ":")).encode()
        if not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = "application/json"
    elif fields["body"] is not None:
        content = to_text(fields["body"]).encode()
    timeout = httpx.Timeout(left, connect=_CONNECT if left is None else min(left, _CONNECT))
    return client.build_request(fields["method"], url, headers=headers, content=content, timeout=timeout)


def _query(given: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Query parameters: null is left out, a list repeats its name."""
    return {
        name: [to_text(v) for v in value] if isinstance(value, list) else to_text(value)
        for name, value in given.items()
        if value is not None
    }


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY:
            raise ValueError(f"the answer exceeds {MAX_BODY >> 20} MiB")
    return bytes(body)


def _output(response: httpx.Response, body: bytes) -> dict[str, Any]:
    try:
        text = body.decode(response.charset_encoding or "utf-8", "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    try:
        parsed = json.loads(text, parse_constant=lambda word: None) if text else None
    except (ValueError, RecursionError):
        parsed = None
    return {
        "status": response.status_code,
        "ok": response.is_success,
        "headers": {name.lower(): value for name, value in response.headers.items()},
        "body": text,
        "json": parsed,
    }


def expected(expect: Any, status: int) -> bool:
    """Whether `status` is a success by `expect`: a status, a class (``2xx``), several of them, else any under 400."""
    if expect is None:
        return status < 400
    if isinstance(expect, list):
        return any(expected(one, status) for one in expect)
    text = str(expect).strip().lower()
    if len(text) == 3 and text.endswith("xx"):
        return text[0] == str(status)[0]
    return text == str(status)


def to_text(value: Any) -> str:
    """A string as it is, anything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
