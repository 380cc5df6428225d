"""The guard as an httpx transport, with real servers on the loopback."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from agentd.security.egress import EgressRefused, transport


@asynccontextmanager
async def server(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers every request with `answer`; its port and the heads it got."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with listener:
        yield listener.sockets[0].getsockname()[1], heads


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def client(**options: object) -> httpx.AsyncClient:
    options.setdefault("verify", False)
    return httpx.AsyncClient(transport=transport(**options), trust_env=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "0"])
def test_every_spelling_of_the_loopback_is_refused_before_a_connection(host: str) -> None:
    async def run() -> None:
        async with server(OK) as (port, heads), client() as http:
            with pytest.raises((EgressRefused, httpx.InvalidURL)):
                await http.get(f"http://{host}:{port}/")
            assert heads == []

    asyncio.run(run())


def test_dials_the_vetted_address_under_the_name_and_resolves_once() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async def run() -> None:
        async with server(OK) as (port, heads), client(allow_private=True, resolve=resolve) as http:
            reply = await http.get(f"http://name.example:{port}/path")
            assert reply.text == "ok"
            assert f"Host: name.example:{port}".encode() in heads[0]
            assert asked == ["name.example"]
            with pytest.raises(EgressRefused, match="metadata"):
                await http.get(f"http://name.example:{port}/again")

    asyncio.run(run())


def test_a_redirect_is_judged_anew() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return [{"outside.example": "127.0.0.1"}.get(host, host)]

    async def run() -> None:
        moved = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n"
        async with server(moved) as (port, heads), client(allow_private=True, resolve=resolve) as http:
            with pytest.raises(EgressRefused, match="metadata"):
                await http.get(f"http://outside.example:{port}/", follow_redirects=True)
            assert len(heads) == 1

    asyncio.run(run())


@pytest.mark.parametrize("options", [{"headers": {"Host": "other.example"}}, {"extensions": {"sni_hostname": "other"}}])
def test_the_name_cannot_be_another_than_the_urls(options: dict[str, object]) -> None:
    async def run() -> None:
        async with server(OK) as (port, heads), client(allow_private=True) as http:
            with pytest.raises(EgressRefused):
                await http.get(f"http://127.0.0.1:{port}/", **options)  # type: ignore[arg-type]
            assert heads == []

    asyncio.run(run())


def test_a_name_that_does_not_resolve_is_a_connection_error() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    async def run() -> None:
        async with client(resolve=resolve) as http:
            with pytest.raises(httpx.ConnectError, match=r"nowhere\.example does not resolve"):
                await http.get("https://nowhere.example/")

    asyncio.run(run())


def test_a_dead_address_costs_the_next_one_nothing() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async def run() -> None:
        async with server(OK) as (port, _), client(allow_private=True, resolve=resolve) as http:
            assert (await http.get(f"http://two.example:{port}/")).text == "ok"

    asyncio.run(run())


def certificate(name: str, path: Path) -> Path:
    """A self-signed certificate for `name` with its key, in a file of its own."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *form) + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_tls_names_and_checks_the_host_of_the_url(tmp_path: Path) -> None:
    pem = certificate("name.example", tmp_path / "server.pem")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    named: list[str | None] = []
    serving.sni_callback = lambda _socket, name, _context: named.append(name)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async def run() -> None:
        verify = ssl.create_default_context(cafile=str(pem))
        async with (
            server(OK, serving) as (port, _),
            client(verify=verify, allow_private=True, resolve=resolve) as http,
        ):
            assert (await http.get(f"https://name.example:{port}/")).text == "ok"
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await http.get(f"https://another.example:{port}/")
        assert named == ["name.example", "another.example"]

    asyncio.run(run())
