"""The guard for outbound requests whose URL comes from a graph or a model.

A name is resolved once, every address it has must be global, and the connection is made to an address that was looked
at, so that a name server that answers differently the second time (rebinding) gains nothing. TLS still checks the
name, and `Host` is the name's. Each redirect is a new request and is judged anew.

:func:`refusal` is the pure judgement, :func:`transport` the httpx transport to give a client. A proxy would make the
connection in our place and escape the guard: the client must be built with `trust_env=False`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentd.errors import AgentdError

if TYPE_CHECKING:
    import ssl

    import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16"))
)
"""Where clouds hand out credentials to whoever asks; the last three are not link-local."""


class EgressRefused(AgentdError):
    """A request to a place that the guard does not let out to."""

    code = "egress"
    template = "refused to connect to {host}: {reason}"


def refusal(address: str, *, allow_private: bool = False) -> str:
    """Why nothing may connect to `address` (an IP literal, any spelling the resolver gives), "" when it may.

    `allow_private` admits loopback, private and unique-local ranges, but neither link-local, which is where metadata
    services live, nor multicast or what is no unicast address at all.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "not an IP address"
    return next((reason for form in _forms(ip) if (reason := _judge(form, allow_private))), "")


def check_url(url: str, *, schemes: Iterable[str] = ("https", "http")) -> None:
    """Refuse a `url` that is malformed, of another scheme, or carries credentials. Raises :class:`EgressRefused`."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as e:
        raise EgressRefused(host="a malformed URL", reason=str(e)) from e
    if parts.scheme not in set(schemes):
        raise EgressRefused(host=host or "?", reason=f"the scheme {parts.scheme!r} is not allowed")
    if not host:
        raise EgressRefused(host="?", reason="the URL names no host")
    if "@" in parts.netloc:
        raise EgressRefused(host=host, reason="the URL carries credentials; use headers with a secret reference")


async def vet(host: str, port: int, *, allow_private: bool = False, resolve: Resolve | None = None) -> list[str]:
    """The addresses of `host`, all of them allowed, in the resolver's order. Raises :class:`EgressRefused`.

    One address that is refused refuses the name: a public name with a private address is no accident.
    """
    try:
        found = await (resolve or _system)(host, port)
    except (OSError, UnicodeError) as e:
        raise EgressRefused(host=host, reason=f"the name does not resolve ({e})") from e
    if not found:
        raise EgressRefused(host=host, reason="the name has no address")
    for address in found:
        if reason := refusal(address, allow_private=allow_private):
            raise EgressRefused(host=host, reason=f"{address} is {reason}", address=address)
    return list(found)


def transport(
    *, verify: ssl.SSLContext | bool = True, allow_private: bool = False, resolve: Resolve | None = None
) -> httpx.AsyncBaseTransport:
    """A transport that connects to vetted addresses only; :class:`EgressRefused` passes through the client."""
    import httpx

    class Guarded(httpx.AsyncBaseTransport):
        def __init__(self) -> None:
            self._inner = httpx.AsyncHTTPTransport(verify=verify, trust_env=False)
            # httpx offers no way to set the network backend; a test holds that this attribute is still the one used.
            self._inner._pool._network_backend = _backend(allow_private, resolve)  # type: ignore[attr-defined]

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.extensions.get("sni_hostname"):
                raise EgressRefused(host=request.url.host, reason="the TLS name may not differ from the URL's")
            check_url(str(request.url))
            return await self._inner.handle_async_request(request)

        async def aclose(self) -> None:
            await self._inner.aclose()

    return Guarded()


def _backend(allow_private: bool, resolve: Resolve | None) -> Any:
    import httpcore

    class Pinned(httpcore.AsyncNetworkBackend):
        def __init__(self) -> None:
            self._inner = httpcore.AnyIOBackend()

        async def connect_tcp(
            self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore.AsyncNetworkStream:  # fmt: skip
            try:
                async with asyncio.timeout(timeout):
                    addresses = await vet(host, port, allow_private=allow_private, resolve=resolve)
            except TimeoutError as e:
                raise httpcore.ConnectTimeout(f"resolving {host} took too long") from e
            failure: Exception | None = None
            for address in addresses:
                try:
                    return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as e:
                    failure = e
            raise failure or httpcore.ConnectError(f"no address of {host} answers")

        async def connect_unix_socket(self, *args: Any, **options: Any) -> httpcore.AsyncNetworkStream:
            raise EgressRefused(host="a unix socket", reason="only TCP is let out")

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    return Pinned()


async def _system(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def _forms(ip: Address) -> list[Address]:
    """`ip` and every IPv4 address hidden in it: whichever a router takes it for must be allowed."""
    forms: list[Address] = [ip]
    if isinstance(ip, ipaddress.IPv6Address):
        low = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if ip in _NAT64 or ip in _NAT64_LOCAL:
            # The well-known prefix itself is global; where it leads is what counts.
            forms = [low] if ip in _NAT64 else [ip, low]
        elif ip.ipv4_mapped:
            forms = [ip.ipv4_mapped]
        elif ip in _COMPATIBLE and int(ip) > 1:
            forms = [ip, low]
        elif ip.sixtofour:
            forms = [ip, ip.sixtofour]
        elif ip.teredo:
            forms = [ip, *ip.teredo]
    return forms


def _judge(ip: Address, allow_private: bool) -> str:
    if ip in _METADATA:
        return "a cloud's metadata service"
    if ip.is_link_local:
        return "link-local"
    if ip.is_multicast:
        return "multicast"
    if ip.is_unspecified:
        return "unspecified"
    if ip == ipaddress.IPv4Address(0xFFFFFFFF):
        return "broadcast"
    if isinstance(ip, ipaddress.IPv4Address) and int(ip) >> 24 == 0:
        return "of this network"
    if ip.is_loopback:
        return "" if allow_private else "loopback"
    if ip.is_reserved and not ip.is_private:
        return "reserved"
    if ip.is_global and ip not in _SITE_LOCAL:
        return ""
    return "" if allow_private else "not globally reachable"
