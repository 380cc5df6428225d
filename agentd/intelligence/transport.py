"""One HTTP exchange with a model endpoint: a whole answer within bounds, or a fault that says what to do.

httpx raises nothing for a compressed body that was cut, so bodies are read raw and decompressed here, under a limit
that holds before and after.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agentd.errors import ConfigError
from agentd.ports.model import ModelFault

if TYPE_CHECKING:
    import httpx

MAX_BODY = 64 << 20
"""Bytes of one answer, on the wire and unpacked."""


class Answer(NamedTuple):
    """A whole response; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Unreachable(ModelFault):
    """The endpoint refused or dropped the connection: nothing was answered."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="failover")


class _Stale(Exception):
    """A pooled connection turned out to be dead before anything came back on it."""


async def post(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], body: bytes, *, limit: int = MAX_BODY
) -> Answer:
    """POST `body`. Raises :class:`ModelFault`: failover when the endpoint cannot be talked to, retry when its answer
    broke off.

    A pooled connection that is dead is nobody's fault: the request is sent once more on another. The server cannot have
    begun on it, since it closed that connection before.
    """
    try:
        return await _exchange(client, url, headers, body, limit)
    except _Stale:
        pass
    try:
        return await _exchange(client, url, headers, body, limit)
    except _Stale as e:
        raise _broken("the connection was closed before an answer") from e


async def _exchange(client: httpx.AsyncClient, url: str, headers: Mapping[str, str], body: bytes, limit: int) -> Answer:
    import httpx

    dialled = False

    async def trace(name: str, info: Any) -> None:
        nonlocal dialled
        dialled = dialled or name.startswith("connection.connect_")

    try:
        request = client.build_request("POST", url, headers=dict(headers), content=body, extensions={"trace": trace})
        response = await client.send(request, stream=True)
    except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as e:
        if not dialled:
            raise _Stale from e
        raise Unreachable(f"the connection was lost before an answer ({type(e).__name__})") from e
    except httpx.TimeoutException as e:
        raise _timed_out(e) from e
    except httpx.ProxyError as e:
        raise Unreachable("the proxy refused the connection") from e
    except ConfigError as e:
        raise ModelFault(e.message, kind="fatal") from e
    except (httpx.LocalProtocolError, UnicodeEncodeError):  # its words repeat the header, which may be the credential
        raise ModelFault("a header or the credential holds a character that no header may", kind="fatal") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as e:
        raise Unreachable(f"cannot connect: {e}" if str(e) else f"cannot connect ({type(e).__name__})") from e
    try:
        return Answer(
            response.status_code, {k.lower(): v for k, v in response.headers.items()}, await _read(response, limit)
        )
    except httpx.TimeoutException as e:
        raise _timed_out(e) from e
    except (httpx.HTTPError, OSError) as e:
        raise _broken(f"the answer broke off ({type(e).__name__})") from e
    finally:
        await response.aclose()


async def _read(response: httpx.Response, limit: int) -> bytes:
    """The body, unpacked."""
    announced = response.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:18]) > limit:
        raise _broken(f"the answer has {announced} bytes, more than {limit}")
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    chunks = response.aiter_raw()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return await _unpack(chunks, limit)
    if encoding not in ("identity", ""):
        raise _broken(f"the answer came as {encoding!r}, which was not asked for")
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise _broken(f"the answer has more than {limit} bytes")
    return bytes(body)


async def _unpack(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """`chunks` decompressed; one that is cut, damaged or swells beyond `limit` is a fault."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    body = bytearray()
    try:
        async for chunk in chunks:
            body += unpacker.decompress(chunk, limit + 1 - len(body))
            if len(body) > limit:
                raise _broken(f"the answer has more than {limit} bytes")
    except zlib.error as e:
        raise _broken("the compressed answer is damaged") from e
    if not unpacker.eof:
        raise _broken("the compressed answer broke off")
    return bytes(body)


def _broken(why: str) -> ModelFault:
    return ModelFault(why, kind="retry")


def _timed_out(error: Exception) -> ModelFault:
    return ModelFault(f"timed out ({type(error).__name__})", kind="failover")
