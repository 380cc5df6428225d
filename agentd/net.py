"""The one place that builds httpx clients: routes, proxies, trust.

httpx reads the proxy variables itself, and dies at construction of a `NO_PROXY` it does not like (`[::1]`, an IPv6
network). So it is told not to (`trust_env=False`), and each request is routed here by rules that take any value:

- loopback hosts are dialled directly, always;
- `NO_PROXY` (`no_proxy` first): `*`, hosts and their subdomains, addresses, networks, each with a port if wanted;
  what cannot be understood is passed over;
- `https_proxy`, `HTTPS_PROXY`; `http_proxy`, `HTTP_PROXY`; then `all_proxy`, `ALL_PROXY`. `HTTP_PROXY` is ignored
  where `REQUEST_METHOD` is set: in a CGI program a client of ours could set it (httpoxy).
"""

from __future__ import annotations

import functools
import importlib
import ipaddress
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentd.errors import ConfigError

if TYPE_CHECKING:
    import ssl

    import httpx

# `import httpx` also imports its command line, and with it click, pygments and rich, which is more than all the rest;
# it carries on without where that import fails.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

_CONNECT_TIMEOUT = 10.0
_KEEP_ALIVE = 90.0
"""Seconds an idle connection is kept: a tool may take a while between two rounds of a turn."""
_PORTS = {"http": 80, "https": 443}


def client(
    *, tls_ca: str | None = None, timeout: float = 120.0, environ: Mapping[str, str] | None = None
) -> httpx.AsyncClient:
    """An HTTP client: `timeout` seconds for each read and write, no redirects, proxies by the rules above.

    `tls_ca` is a PEM file of further roots; it is read at the first https request, and so are the system's.
    """
    import httpx

    from agentd import __version__

    routes = Routes(tls_ca, os.environ if environ is None else environ)
    return httpx.AsyncClient(
        transport=routes,  # type: ignore[arg-type]  # a transport by shape, so that httpx can be imported late
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT)),
        headers={"user-agent": f"agentd/{__version__}", "accept-encoding": "gzip"},
    )


def warm(*, secure: bool = False, tls_ca: str | None = None) -> None:
    """Import what the first request would, for a process that forks others; opens nothing.

    httpx brings httpcore only when a transport is made, and that picks its backend at its first connection. `secure`
    also reads the roots.
    """
    import httpx

    for name in ("anyio._backends._asyncio", "httpcore._backends.anyio"):
        importlib.import_module(name)
    httpx.AsyncHTTPTransport(verify=False, trust_env=False)
    if secure:
        tls_context(tls_ca, os.environ.get("SSL_CERT_FILE"))


class Routes:
    """An httpx transport that sends each request directly or through its proxy."""

    def __init__(self, tls_ca: str | None, environ: Mapping[str, str]) -> None:
        self._tls_ca, self._environ = tls_ca, environ
        self._transports: dict[tuple[str | None, bool], httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        proxy = proxy_for(str(request.url), self._environ)
        return await self._transport(proxy, request.url.scheme == "https").handle_async_request(request)

    def _transport(self, proxy: str | None, secure: bool) -> httpx.AsyncHTTPTransport:
        import httpx

        found = self._transports.get((proxy, secure))
        if found is None:
            limits = httpx.Limits(keepalive_expiry=_KEEP_ALIVE)
            guarded = (proxy or "").startswith("https:")
            trust = tls_context(self._tls_ca, self._environ.get("SSL_CERT_FILE")) if secure or guarded else None
            via = None if proxy is None else httpx.Proxy(proxy, ssl_context=trust if guarded else None)
            found = httpx.AsyncHTTPTransport(verify=trust or False, proxy=via, limits=limits, trust_env=False)
            self._transports[proxy, secure] = found
        return found

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    async def __aenter__(self) -> Routes:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


@functools.lru_cache(maxsize=8)
def tls_context(tls_ca: str | None = None, cert_file: str | None = None) -> ssl.SSLContext:
    """The trust of an https client: the system's roots (or those in `cert_file`), and those in `tls_ca` beside them.

    Where a system has no roots the bundle that comes with httpx serves. Raises :class:`ConfigError` for a file that
    cannot be read. Made once: it takes some 20 ms.
    """
    import ssl

    if cert_file and not Path(cert_file).exists():
        raise ConfigError(f"SSL_CERT_FILE names {cert_file}, which does not exist: correct it or unset it")
    context = ssl.create_default_context(cafile=cert_file or None)
    paths = ssl.get_default_verify_paths()
    if not cert_file and not (paths.cafile or (paths.capath and any(Path(paths.capath).iterdir()))):
        import certifi

        context.load_verify_locations(certifi.where())
    if tls_ca:
        try:
            context.load_verify_locations(tls_ca)
        except (OSError, ssl.SSLError) as e:
            raise ConfigError(f"security.tls_ca: {tls_ca} is no readable PEM file: {e}") from e
    return context


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy URL for `url`, None to dial directly. Raises :class:`ConfigError` naming the variable that is wrong."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = parts.port or _PORTS.get(parts.scheme, 0)
    if is_loopback(host) or _bypassed(host, port, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return None
    for variable in _variables(parts.scheme, environ):
        if value := environ.get(variable, "").strip():
            problem = _problem(value)
            if problem:
                raise ConfigError(f"{variable} {problem}")
            return _absolute(value)
    return None


def proxy_findings(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """``(variable, what is wrong with it)`` for each proxy variable that cannot be used; never its value."""
    names = dict.fromkeys(v for scheme in _PORTS for v in _variables(scheme, environ))
    found = [(name, _problem(environ[name].strip())) for name in names if environ.get(name, "").strip()]
    return [(name, problem) for name, problem in found if problem]


def is_loopback(host: str) -> bool:
    """Whether `host` (a name or an address, brackets or not) can only be this machine."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _variables(scheme: str, environ: Mapping[str, str]) -> Iterable[str]:
    yield f"{scheme}_proxy"
    if scheme != "http" or "REQUEST_METHOD" not in environ:
        yield f"{scheme}_proxy".upper()
    yield from ("all_proxy", "ALL_PROXY")


def _absolute(value: str) -> str:
    return value if "://" in value else f"http://{value}"


def _problem(value: str) -> str:
    """Why `value` is no proxy; it may hold a password and is never repeated."""
    try:
        parts = urlsplit(_absolute(value))
        usable = bool(parts.hostname) and not re.search(r"\s", value) and parts.port != 0
    except ValueError:
        return "is no URL of a proxy: expected http://host:port"
    if parts.scheme.startswith("socks"):
        return "names a SOCKS proxy, which is not supported: use an HTTP proxy (http://host:port) or unset it"
    if not usable or parts.scheme not in _PORTS:
        return "is no URL of a proxy: expected http://host:port"
    return ""


def _bypassed(host: str, port: int, no_proxy: str) -> bool:
    return any(_matches(entry, host, port) for entry in re.split(r"[,\s]+", no_proxy.lower()) if entry)


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            return False
    if (whole := _address(entry.strip("[]"))) is not None:
        return whole == address
    name, wanted = _with_port(entry)
    if wanted is not None and wanted != port:
        return False
    if (whole := _address(name.strip("[]"))) is not None:
        return whole == address
    name = name.removeprefix("*").lstrip(".")
    return bool(name) and (host == name or host.endswith("." + name))


def _with_port(entry: str) -> tuple[str, int | None]:
    name, colon, port = entry.rpartition(":")
    return (name, int(port)) if colon and port.isascii() and port.isdigit() else (entry, None)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
