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
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


def _nets(text: str) -> list[Network]:
    return [ipaddress.ip_network(net) for net in text.split()]


# The tables are our own: what `is_global` means has changed between patch releases of Python.
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
"""The only space IANA gives out addresses of; all else is special."""
_SPECIAL_V6 = _nets("2001::/23 2001:db8::/32 2002::/16 3fff::/20")
"""Protocol assignments (Teredo and ORCHID among them), documentation, 6to4 (which hides an IPv4 address)."""
_PRIVATE_V6 = _nets("::1/128 fc00::/7")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SPECIAL_V4 = _nets(
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24"
    " 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
)
_PRIVATE_V4 = _nets("10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16")
_METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16"))
)
"""Where clouds hand out credentials to whoever asks; only the first is link-local."""


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
    return _judge(_real(ip), allow_private)


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
    """The addresses of `host`, all of them allowed, in the resolver's order.

    One address that is refused refuses the name: a public name with a private address is no accident. Raises
    :class:`EgressRefused`, and `OSError` for a name that does not resolve (now: another attempt may help).
    """
    try:
        found = await (resolve or _system)(host, port)
    except UnicodeError as e:
        raise EgressRefused(host=host, reason="no such name can exist") from e
    if not found:
        raise socket.gaierror(socket.EAI_NONAME, f"{host} has no address")
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
            self._inner._pool._network_backend = _backend(allow_private, resolve)

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.extensions.get("sni_hostname"):
                raise EgressRefused(host=request.url.host, reason="the TLS name may not differ from the URL's")
            if request.headers.get("host", "") != request.url.netloc.decode("ascii"):
                raise EgressRefused(host=request.url.host, reason="the Host header may not differ from the URL's")
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
            except OSError as e:
                raise httpcore.ConnectError(f"{host} does not resolve: {e}") from e
            # One address that swallows packets must not use up the time of the others.
            share = None if timeout is None else timeout / len(addresses)
            failure: Exception | None = None
            for address in addresses:
                try:
                    return await self._inner.connect_tcp(address, port, share, local_address, socket_options)
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


def _real(ip: Address) -> Address:
    """The IPv4 address that a mapped (`::ffff:…`) or NAT64 address leads to, any other as it is."""
    if isinstance(ip, ipaddress.IPv6Address):
        return ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip)
    return ip


def _judge(ip: Address, allow_private: bool) -> str:
    if ip in _METADATA:
        return "a cloud's metadata service"
    if ip.is_link_local:
        return "link-local"
    if ip.is_multicast:
        return "multicast"
    private, special = (_PRIVATE_V4, _SPECIAL_V4) if ip.version == 4 else (_PRIVATE_V6, _SPECIAL_V6)
    if any(ip in net for net in private):
        return "" if allow_private else "loopback" if ip.is_loopback else "private"
    if any(ip in net for net in special) or (ip.version == 6 and ip not in _GLOBAL_V6):
        return "not globally reachable"
    return ""
