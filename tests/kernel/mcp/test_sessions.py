"""Sessions that a server forgets, and servers that restart."""

from __future__ import annotations

import asyncio

import pytest

from agentd.mcp.meta import call_meta
from agentd.mcp.records import Connected, McpFault
from agentd.testing.mcp_server import McpServer

pytestmark = pytest.mark.anyio
META = call_meta(run_id="r", instance="i", key="k")


@pytest.mark.parametrize("name", ["forget_once", "forget_status_404", "forget_status_400", "forget_status_401"])
async def test_a_forgotten_session_is_opened_again_and_the_call_repeated(name, scripted, connections):
    server = scripted(f"C11/{name}")
    found = connections(s=server.url)
    await found.connect()
    for _ in range(4):
        assert (await found.call("s", "a", {}, meta=META)).text == "ok"
    first, second = server.posts("initialize")
    assert first.session is second.session is None
    calls = server.posts("tools/call")
    assert len(calls) == 5
    assert {c.params["_meta"]["agent/idempotency_key"] for c in calls} == {"k"}
    assert len(server.posts("server/discover")) == 1, "the revision is known by then"
    assert len(server.posts("tools/list")) == 2


async def test_concurrent_callers_share_one_opening(scripted, connections):
    server = scripted("C11/forget_once")
    found = connections(s=server.url)
    await found.connect()
    await found.call("s", "a", {})
    server.sessions.clear()
    results = await asyncio.gather(*(found.call("s", "a", {"n": n}) for n in range(20)))
    assert {r.text for r in results} == {"ok"}
    assert len(server.posts("initialize")) == 2


async def test_callers_before_the_connect_share_one_opening_too(scripted, connections):
    server = scripted("C19/good")
    found = connections(s=server.url)
    await asyncio.gather(*(found.call("s", "a", {}) for _ in range(5)))
    assert len(server.posts("initialize")) == 1


async def test_a_session_that_is_refused_again_is_reported(scripted, connections):
    server = scripted({"capabilities": {}, "session": {"status": 401}})
    found = connections(s=server.url)
    await found.connect()
    server.sessions = _Amnesia()
    with pytest.raises(McpFault) as caught:
        await found.call("s", "a", {})
    assert caught.value.http_status == 401
    assert len(server.posts("tools/call")) == 2


class _Amnesia(set):
    def __contains__(self, _: object) -> bool:
        return False


async def test_a_refusal_that_is_not_about_the_session_is_not_repeated(scripted, connections):
    body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad arguments"}}'
    bad = {"http": {"status": 400, "type": "application/json", "body": body}}
    server = scripted({"capabilities": {"tools": {}}, "calls": {"a": [bad]}})
    found = connections(s=server.url)
    with pytest.raises(McpFault) as caught:
        await found.call("s", "a", {})
    assert caught.value.rpc_code == -32602 and not caught.value.retry
    assert len(server.posts("tools/call")) == 1


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.parametrize(
    ("family", "protocol"), [("session", "2025-11-25"), ("stateless", "2026-07-28"), ("both", "2026-07-28")]
)
async def test_a_real_server_of_each_family_is_used_before_and_after_its_restart(family, protocol, connections):
    with McpServer({"add": add}, family=family) as server:
        found = connections(s=server.url)
        offer = (await found.connect())["s"]
        assert offer.protocol == protocol
        assert [t.name for t in offer.tools] == ["add"]
        assert (await found.call("s", "add", {"a": 1, "b": 2}, meta=META)).value == {"result": 3}
        await asyncio.to_thread(server.restart)
        assert (await found.call("s", "add", {"a": 3, "b": 4}, meta=META)).value == {"result": 7}
        assert server.calls[-1]["_meta"].items() >= META.items()
        assert len([m for m in server.methods() if m == "server/discover"]) == 1


async def test_what_is_not_advertised_is_not_asked(connections):
    with McpServer(family="session") as server:
        found = connections(s=server.url)
        await found.connect()
        assert server.methods() == ["server/discover", "initialize", "notifications/initialized", "tools/list"]


@pytest.mark.parametrize("family", ["session", "stateless"])
async def test_what_is_known_is_not_asked_again(family, connections):
    with McpServer({"add": add}, family=family) as server:
        offers = await connections(s=server.url).connect()
        server.requests.clear()
        found = connections(s=server.url, known=offers)
        assert (await found.call("s", "add", {"a": 1, "b": 2})).value == {"result": 3}
        opening = ["initialize", "notifications/initialized"] if family == "session" else []
        assert server.methods() == [*opening, "tools/call"]


async def test_a_server_of_another_family_than_known_is_asked_anew(connections):
    known = {"s": Connected(protocol="2026-07-28")}
    with McpServer({"add": add}, family="session") as server:
        found = connections(s=server.url, known=known)
        assert (await found.call("s", "add", {"a": 1, "b": 2})).value == {"result": 3}
        assert [t.name for t in found.offered()["s"].tools] == ["add"]
