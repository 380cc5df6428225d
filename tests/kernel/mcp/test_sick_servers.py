"""A sick server costs its own tools only, and nothing else is heard of it."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agentd.mcp.records import Connected, Failed, McpFault
from agentd.testing.mcp_server import McpServer

pytestmark = pytest.mark.anyio


async def dead_port() -> str:
    """An endpoint where nothing listens."""
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return f"http://127.0.0.1:{port}/mcp"


def certificate(directory: Path) -> Path:
    """A self-signed certificate and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "cert.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


async def test_seven_servers_two_of_them_well(scripted, connections, tmp_path, recwarn, caplog):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    foreign = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0, ssl=context)
    silent = scripted({"initialize": {"hang_s": 30}})
    html = {"initialize": {"http": {"status": 200, "type": "text/html", "body": "<html>"}}}
    found = connections(
        good=scripted("C19/good").url,
        refuses=await dead_port(),
        silent=silent.url,
        html=scripted(html).url,
        foreign=f"https://localhost:{foreign.sockets[0].getsockname()[1]}/mcp",
        drops=scripted({"initialize": {"drop": True}}).url,
        good2=scripted("C19/good").url,
    )
    outcomes = await found.connect(within=2.0)
    well = {name for name, outcome in outcomes.items() if isinstance(outcome, Connected)}
    assert well == {"good", "good2"}
    told = {name: outcome.err for name, outcome in outcomes.items() if isinstance(outcome, Failed)}
    assert "ConnectError" in told["refuses"]
    assert "no answer within 2 s" in told["silent"]
    assert "text/html" in told["html"]
    assert "certificate" in told["foreign"].lower()
    assert all(name in err for name, err in told.items())
    for name in ("good", "good2"):
        assert (await found.call(name, "a", {})).text == "ok"
    await found.close()
    foreign.close()
    heard = caplog.text + "".join(str(w.message) for w in recwarn)
    for noise in ("cancel scope", "never retrieved", "GeneratorExit", "unhandled errors in a TaskGroup"):
        assert noise not in heard


async def test_servers_leave_in_any_order(scripted, connections):
    names = ["first", "middle", "last"]
    found = connections(**{name: scripted("C19/good").url for name in names})
    await found.connect()
    for leaving in ("middle", "first", "last"):
        assert (await found.call(leaving, "a", {})).text == "ok"
        await found.close([leaving])
        names.remove(leaving)
        for staying in names:
            assert (await found.call(staying, "a", {})).text == "ok"


async def test_a_server_that_dies_during_a_call_fails_that_call(scripted, connections):
    found = connections(sick=scripted("C19/dies_on_call").url, good=scripted("C19/good").url)
    await found.connect()
    dying = asyncio.ensure_future(found.call("sick", "x", {}))
    assert (await found.call("good", "a", {})).text == "ok"
    with pytest.raises(McpFault) as caught:
        await dying
    assert caught.value.retry
    assert (await found.call("good", "a", {})).text == "ok"


@pytest.mark.parametrize("family", ["session", "stateless"])
async def test_a_dead_server_is_used_again_when_it_is_back(family, connections):
    with McpServer({"ok": lambda: "ok"}, family=family) as server:
        found = connections(s=server.url)
        await found.connect()
        await asyncio.to_thread(server.stop)
        with pytest.raises(McpFault) as caught:
            await found.call("s", "ok", {}, timeout=2)
        assert caught.value.retry
        await asyncio.to_thread(server.start)
        assert (await found.call("s", "ok", {})).text == "ok"


async def test_a_server_that_was_down_at_first_is_asked_at_most_now_and_then(scripted, connections):
    found = connections(s=await dead_port())
    assert isinstance((await found.connect())["s"], Failed)
    for _ in range(3):
        with pytest.raises(McpFault, match="ConnectError"):
            await found.call("s", "a", {}, timeout=2)


async def test_a_call_is_bounded_by_its_timeout(scripted, connections):
    server = scripted({"capabilities": {"tools": {}}, "calls": {"slow": [{"hang_s": 30}]}})
    found = connections(s=server.url)
    await found.connect()
    with pytest.raises(McpFault, match="timed out") as caught:
        await found.call("s", "slow", {}, timeout=0.2)
    assert caught.value.retry and not caught.value.session_lost
    assert (await found.call("s", "other", {})).text == "ok"


async def test_a_cancelled_call_leaves_the_connection_whole(scripted, connections):
    server = scripted({"capabilities": {"tools": {}}, "calls": {"slow": [{"hang_s": 30}]}})
    found = connections(s=server.url)
    call = asyncio.ensure_future(found.call("s", "slow", {}))
    assert await asyncio.to_thread(server.wait_for, lambda s: s.posts("tools/call"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await found.call("s", "other", {})).text == "ok"


async def test_closing_a_hung_server_is_bounded(scripted, connections):
    server = scripted({"capabilities": {"tools": {}}, "calls": {"slow": [{"hang_s": 30}]}})
    found = connections(s=server.url)
    call = asyncio.ensure_future(found.call("s", "slow", {}))
    assert await asyncio.to_thread(server.wait_for, lambda s: s.posts("tools/call"))
    async with asyncio.timeout(3):
        await found.close()
    with pytest.raises(McpFault):
        await call


@pytest.mark.parametrize(
    "reply",
    [
        {"http": {"status": 200, "body": "not MCP"}},
        {"http": {"status": 200, "type": "application/json", "body": "{"}},
        {"http": {"status": 500, "body": "oops"}},
        {"http": {"status": 202, "body": ""}},
        {"sse": ["event: message\ndata: {broken\n\n"]},
        {"sse": [": nothing more\n\n"]},
        {"drop": True},
    ],
)
async def test_a_broken_answer_is_the_fault_of_one_call(reply, scripted, connections):
    server = scripted({"capabilities": {"tools": {}}, "calls": {"bad": [reply]}})
    found = connections(s=server.url)
    with pytest.raises(McpFault):
        await found.call("s", "bad", {}, timeout=3)
    assert (await found.call("s", "other", {})).text == "ok"
    assert len(server.posts("initialize")) == 1


async def test_an_answer_without_bounds_is_refused(scripted, connections):
    body = '{"jsonrpc":"2.0","id":1,"result":{"x":"' + "x" * (17 << 20)
    huge = {"http": {"status": 200, "type": "application/json", "body": body}}
    found = connections(s=scripted({"capabilities": {"tools": {}}, "calls": {"huge": [huge]}}).url)
    with pytest.raises(McpFault, match="exceeds"):
        await found.call("s", "huge", {})


async def test_an_answer_to_another_request_is_no_answer(scripted, connections):
    stray = {"wrong_id": True, "result": {"content": []}}
    found = connections(s=scripted({"capabilities": {"tools": {}}, "calls": {"a": [stray]}}).url)
    with pytest.raises(McpFault):
        await found.call("s", "a", {}, timeout=0.3)


async def test_a_short_patience_does_not_spoil_the_opening_for_others(scripted, connections):
    server = scripted({"initialize": {"hang_s": 0.4, "drop": True}})
    found = connections(s=server.url)
    patient = asyncio.ensure_future(found.call("s", "a", {}, timeout=10))
    with pytest.raises(McpFault, match=r"no answer within 0\.1 s"):
        await found.call("s", "a", {}, timeout=0.1)
    with pytest.raises(McpFault) as caught:
        await patient
    assert "RemoteProtocolError" in caught.value.message


async def test_a_notification_that_hangs_holds_up_nothing(connections):
    """The SDK posts notifications in line; only those are given a short time."""
    import httpx2

    from agentd.mcp.http import SoftClient

    seen: list[float] = []

    def play(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.extensions["timeout"]["read"])
        return httpx2.Response(202)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with SoftClient(headers={}, tls=tls, transport=httpx2.MockTransport(play)) as client:
        for message in ({"method": "notifications/initialized"}, {"method": "tools/call", "id": 1}):
            await client.post("http://127.0.0.1/mcp", json={"jsonrpc": "2.0", **message})
    assert seen == [5.0, 900.0]


async def test_plain_http_leaves_the_machine_never(connections):
    outcome = (await connections(s="http://192.0.2.1/mcp").connect())["s"]
    assert isinstance(outcome, Failed) and "https" in outcome.err
