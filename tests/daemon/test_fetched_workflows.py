"""Workflows that are fetched when an instance starts: all of them, or no start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentd.testing.http_site import Site
from tests.daemon.command import Ended, run

DEFINITION = """
name: somebody-elses
steps:
  s: {kind: once}
  f: {kind: finish, depends_on: s, output: fetched}
"""
WIDE = """
name: wide
steps:
  s: {kind: once}
  a: {kind: agent, depends_on: s, instruction: x, tools: ["*"]}
  f: {kind: finish, depends_on: a}
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        site.answers["/w.yaml"] = [(200, {}, DEFINITION.encode())]
        site.answers["/wide.yaml"] = [(200, {}, WIDE.encode())]
        site.answers["/broken.yaml"] = [(200, {}, b"name: x\nsteps: {s: {kind: nonsense}}\n")]
        site.answers["/gone.yaml"] = [(404, {}, b"no")]
        site.answers["/list.yaml"] = [(200, {}, b"[1, 2]")]
        yield site


def started(tmp_path: Path, entry: dict[str, Any], **more: Any) -> Ended:
    document = {
        "workflows": [{"name": "w", "allow_private": True, **entry}],
        "intelligence": {"endpoints": "mock:final"},
    }
    (tmp_path / "a.json").write_text(json.dumps({**document, **more}))
    return run(tmp_path, "-c", "a.json", env={"TOKEN": "t0ken-of-ours"})


def test_a_fetched_workflow_runs_under_the_name_it_is_given(tmp_path: Path, site: Site) -> None:
    ended = started(tmp_path, {"url": f"{site.url}/w.yaml", "headers": {"authorization": "Bearer {{secret:TOKEN}}"}})
    assert (ended.code, ended.out) == (0, "fetched\n")
    assert ended.one("run.done")["workflow"] == "w"
    assert site.requests[0][2]["authorization"] == "Bearer t0ken-of-ours"
    assert "t0ken" not in str(ended.events)


@pytest.mark.parametrize(
    ("path", "says"),
    [("/gone.yaml", "HTTP 404"), ("/broken.yaml", "nonsense"), ("/list.yaml", "no workflow"), (":1/w.yaml", "fetch")],
)
def test_what_cannot_be_used_is_no_start(tmp_path: Path, site: Site, path: str, says: str) -> None:
    url = f"http://127.0.0.1{path}" if path.startswith(":") else f"{site.url}{path}"
    ended = started(tmp_path, {"url": url})
    assert (ended.code, ended.out, ended.odd) == (2, "", [])
    assert says in str(ended.one("proc.fatal"))


def test_an_address_that_is_not_public_takes_a_decision(tmp_path: Path, site: Site) -> None:
    ended = started(tmp_path, {"url": f"{site.url}/w.yaml", "allow_private": False})
    assert ended.code == 2
    assert not site.requests


def test_the_rule_of_two_holds_for_what_was_fetched(tmp_path: Path, site: Site) -> None:
    servers = [
        {"name": "a", "endpoint": "http://127.0.0.1:9/mcp", "tags": {"*": ["untrusted_input", "sensitive"]}},
        {"name": "b", "endpoint": "http://127.0.0.1:9/mcp", "tags": {"*": ["egress"]}},
    ]
    narrow = {"tools": {"mcp": ["a.*"]}}
    ended = started(tmp_path, {"url": f"{site.url}/wide.yaml"}, mcp={"servers": servers}, agent=narrow)
    assert ended.code == 2
    assert "allow_trifecta" in str(ended.one("proc.fatal"))
