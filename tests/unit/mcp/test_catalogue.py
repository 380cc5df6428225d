"""Pages, selection and names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.mcp.catalogue import MAX_PAGES, Catalogue, Pages, judge_tools, offered, safe_names
from agentd.mcp.records import Connected, ServerSpec, Tool


def spec(name: str = "s", **kw) -> ServerSpec:
    return ServerSpec(name=name, endpoint="http://127.0.0.1/mcp", **kw)


def connected(*tools: str) -> Connected:
    return Connected(protocol="2025-11-25", tools=tuple(Tool(name=t, description="", schema={}) for t in tools))


@pytest.mark.parametrize(
    ("page", "more", "warned"),
    [
        ({"tools": [{"name": "a"}]}, False, False),
        ({"tools": [], "nextCursor": ""}, True, False),
        ({"tools": [], "nextCursor": None}, False, False),
        ({"tools": None}, False, True),
        ({}, False, True),
        ([], False, True),
    ],
)
def test_a_page_is_read_tolerantly(page, more, warned):
    pages = Pages("tools")
    pages.feed(page)
    assert (pages.more, bool(pages.warning)) == (more, warned)


def test_a_listing_ends_at_the_cap():
    pages = Pages("tools")
    fed = 0
    while pages.more:
        pages.feed({"tools": [{"name": str(fed)}], "nextCursor": str(fed)})
        fed += 1
    assert fed == len(pages.items) == MAX_PAGES
    assert "cut short" in pages.warning


@pytest.mark.parametrize(
    ("allow", "exclude", "expected"),
    [
        (None, [], ["get", "put", "Put"]),
        (["p*"], [], ["put"]),
        ([], [], []),
        (None, ["p*"], ["get", "Put"]),
        (["*"], ["get"], ["put", "Put"]),
    ],
)
def test_globs_choose_among_bare_names(allow, exclude, expected):
    chosen = spec(allow=allow, exclude=exclude)
    assert [t for t in ("get", "put", "Put") if offered(chosen, t)] == expected


def test_a_tool_that_is_not_offered_is_not_judged():
    tools, problems = judge_tools(spec(exclude=["bad"]), [{"name": "bad", "inputSchema": 7}, {"name": "ok"}, {"x": 1}])
    assert [t.name for t in tools] == ["ok"]
    assert [p.tool for p in problems] == ["ok", ""]


def test_what_a_listing_says_of_a_tool():
    listed = {"name": "a", "title": "A", "description": None, "inputSchema": {"type": "object", "properties": {}},
              "annotations": {"readOnlyHint": True}, "outputSchema": {"type": "object"}}  # fmt: skip
    (tool,), problems = judge_tools(spec(), [listed])
    assert (tool.description, tool.read_only, tool.output_schema, problems) == ("A", True, {"type": "object"}, [])


def test_names_follow_the_server_or_its_namespace():
    catalogue = Catalogue([spec("fs"), spec("db", ns="data")], {"fs": connected("get"), "db": connected("q.run")})
    assert [(o.full, o.safe) for o in catalogue.offers] == [("fs.get", "fs_get"), ("data.q.run", "data_q_run")]


def test_a_bare_name_serves_when_one_server_has_it():
    catalogue = Catalogue([spec("a"), spec("b")], {"a": connected("x", "get-sum"), "b": connected("x")})
    assert catalogue.resolve("get-sum").server == "a"
    assert catalogue.resolve("x") is None
    assert catalogue.resolve("b.x").server == "b"
    assert catalogue.resolve("nobody") is None


def test_a_safe_name_goes_before_a_bare_one():
    catalogue = Catalogue([spec("a"), spec("b")], {"a": connected("x"), "b": connected("a_x")})
    assert catalogue.resolve("a_x").server == "a"


def test_a_server_that_failed_offers_nothing():
    assert Catalogue([spec("a"), spec("b")], {"b": connected("x")}).resolve("x").server == "b"


@given(st.lists(st.tuples(st.text(max_size=80), st.sampled_from("ab")), max_size=20))
def test_safe_names_are_safe_unique_and_steady(names):
    safe = safe_names(names)
    assert set(safe) == set(names)
    assert len(set(safe.values())) == len(safe)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{0,64}", s) for s in safe.values())
    assert safe_names(reversed(names)) == safe
