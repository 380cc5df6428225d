"""The field cases about listings, results and requests from the server, each file a row."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agentd.mcp.catalogue import Catalogue
from agentd.mcp.records import Connected

pytestmark = pytest.mark.anyio
DATA = Path(__file__).parent / "data"


def rows(kind: str) -> list[str]:
    return sorted(f"{kind}/{path.stem}" for path in (DATA / kind).glob("*.json"))


def scenario(name: str) -> dict:
    return json.loads((DATA / f"{name}.json").read_text())


@pytest.mark.parametrize("name", rows("C13"))
async def test_every_page_is_read_once(name, scripted, connections):
    server = scripted(name)
    offer = (await connections(s=server.url).connect())["s"]
    told = scenario(name)
    names, expected = [t.name for t in offer.tools], told.get("expect", ["a"])
    assert len(names) == expected if isinstance(expected, int) else names == expected
    assert len(set(names)) == len(names)
    assert len(server.posts("tools/list")) <= told.get("max_list_requests", len(told["pages"]) + 1)


async def test_a_cursor_is_handed_back_as_it_came(scripted, connections):
    server = scripted("C13/empty_string_cursor_is_a_cursor")
    await connections(s=server.url).connect()
    assert [e.params.get("cursor") for e in server.posts("tools/list")] == [None, ""]


async def test_a_repeated_cursor_is_warned_about(scripted, connections, log):
    await connections(s=scripted("C13/repeats_cursor_forever").url).connect()
    assert "cursor repeats" in log.of("mcp.warning")[0]["msg"]


async def test_an_error_on_page_two_keeps_page_one(scripted, connections, log):
    told = scenario("C13/error_on_page_two")
    told["pages"].append({"cursor": "x", "http": {"status": 500, "body": "oops"}})
    offer = (await connections(s=scripted(told).url).connect())["s"]
    assert [t.name for t in offer.tools] == ["a"]
    assert "cut short" in log.of("mcp.warning")[0]["msg"]


RESULTS = {
    "absent_but_json_text": ({"n": 1}, False, 1),
    "absent_plain_text": ("ok", False, 1),
    "array_structured": (None, True, 1),
    "good": ({"n": 1}, False, 0),
    "is_error_with_other_shape": ({"error": "bad"}, True, 0),
    "is_error_without": ("quota exceeded for tenant", True, 0),
    "null_structured": ({"n": 1}, False, 1),
    "wrong_type": (None, True, 1),
}


@pytest.mark.parametrize("name", sorted(RESULTS))
async def test_a_result_is_read_for_what_it_is(name, scripted, connections, log):
    value, is_error, warnings = RESULTS[name]
    found = connections(s=scripted(f"C14/{name}").url)
    await found.connect()
    result = await found.call("s", "a", {})
    assert result.is_error is is_error
    if value is not None:
        assert result.value == value
    else:
        assert "tool 'a'" in result.text
    assert len(result.warnings) == len(log.of("mcp.warning")) == warnings


async def test_the_words_of_an_error_come_through(scripted, connections):
    found = connections(s=scripted("C14/is_error_without").url)
    assert (await found.call("s", "a", {})).text == "quota exceeded for tenant"


async def test_json_text_of_a_store_server_is_its_value(scripted, connections):
    found = connections(s=scripted("C14/store_put_text_only").url)
    assert (await found.call("s", "state.put", {})).value == {"ok": True}
    assert (await found.call("s", "state.get", {})).value == {"state": None}


LEFT_OUT = {"schema_string_type"}


@pytest.mark.parametrize("name", rows("C15"))
async def test_one_bad_schema_costs_at_most_its_tool(name, scripted, connections, log):
    found = connections(s=scripted(name).url)
    offer = (await found.connect())["s"]
    bad = name.removeprefix("C15/")
    names = [t.name for t in offer.tools]
    assert names == (["good", "good2"] if bad in LEFT_OUT else ["good", bad, "good2"])
    for tool in offer.tools:
        assert tool.schema["type"] == "object"
        assert isinstance(tool.schema["properties"], dict)
        assert isinstance(tool.description, str)
        assert "http://127.0.0.1:9" not in json.dumps(tool.schema)
    if bad in LEFT_OUT:
        (warning,) = log.of("mcp.warning")
        assert (warning["server"], warning["tool"]) == ("s", bad)


async def test_requests_of_the_server_are_answered_and_served_only_as_declared(scripted, connections):
    server = scripted("C17/requests")
    found = connections(s=server.url)
    await found.connect()
    assert await asyncio.to_thread(server.wait_for, lambda s: len(s.replies()) >= 5)
    replies = server.replies()
    assert replies["srv-0"]["result"] == replies["srv-4"]["result"] == {}
    assert all("error" in replies[f"srv-{i}"] for i in (1, 2, 3))
    assert server.posts("initialize")[0].params["capabilities"] == {}
    assert (await found.call("s", "a", {})).text == "ok"


async def test_a_ping_is_answered_while_a_call_runs(scripted, connections):
    told = scenario("C17/requests") | {"calls": {"a": [{"hang_s": 20}]}}
    told["server_requests"] = [{"method": "ping"}]
    server = scripted(told)
    call = asyncio.ensure_future(connections(s=server.url).call("s", "a", {}))
    assert await asyncio.to_thread(server.wait_for, lambda s: s.posts("tools/call") and "srv-0" in s.replies())
    call.cancel()
    await asyncio.wait({call})


async def test_stray_messages_are_ignored(scripted, connections):
    note = {"method": "notifications/message", "params": {"level": "info", "data": "x" * (1 << 20)}}
    pushes = [
        {"method": "notifications/made_up", "params": {"x": 1}},
        note,
        {"method": "notifications/progress", "params": {"progressToken": "nobody", "progress": 1}},
        {"method": "notifications/cancelled", "params": {"requestId": "nobody"}},
        {"id": "nobody", "result": {}},
        {"id": "srv-last", "method": "ping"},
    ]
    server = scripted(scenario("C17/requests") | {"server_requests": [], "pushes": pushes})
    found = connections(s=server.url)
    await found.connect()
    assert await asyncio.to_thread(server.wait_for, lambda s: "srv-last" in s.replies())
    assert (await found.call("s", "a", {})).text == "ok"


async def test_tools_are_found_by_safe_full_and_bare_name(scripted, connections):
    urls = {"one": scripted("C15/no_properties").url, "two": scripted("C15/defs_ref").url}
    found = connections(**urls)
    offers = {k: v for k, v in (await found.connect()).items() if isinstance(v, Connected)}
    catalogue = Catalogue(found.specs, offers)
    assert catalogue.resolve("one_good").server == catalogue.resolve("one.good").server == "one"
    assert catalogue.resolve("defs_ref").server == "two"
    assert catalogue.resolve("good") is None
