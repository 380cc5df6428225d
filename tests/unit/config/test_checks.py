"""What the types cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentd.config.checks import endpoint_fault
from agentd.config.load import load


@pytest.mark.parametrize("url", ["https://h/v1", "http://127.0.0.1:1/x", "http://[::1]:8/x", "http://localhost"])
def test_endpoints_that_may_be_dialled(url: str) -> None:
    assert endpoint_fault(url) == ""


@pytest.mark.parametrize(
    "url",
    [
        "http://h/v1",
        "ftp://h",
        "h:80",
        "https://",
        "https://u:p@h",
        "http://127.0.0.1.evil.com",
        "https://[::1",
        "https://h:99999",
        "https://h/a b",
        "{{secret:URL}}",
    ],
)
def test_endpoints_that_may_not(url: str) -> None:
    assert endpoint_fault(url)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            "mcp: {servers: [{name: a, endpoint: https://a}, {name: a, endpoint: https://b}]}",
            "mcp.servers[1].name: 'a' is",
        ),
        ("mcp: {servers: [{name: code, endpoint: https://a}]}", "reserved"),
        ("agent: {instruction: {text: a, file: b}}", "exactly one source is needed, got text, file"),
        ("store: {kind: redis}", "store.kind: stores 'redis' is not installed: pip install 'agentd[redis]'"),
        ("lifecycle: {run_until: drained}\nstore: {kind: none}", "a long-lived instance needs a store"),
        ("lifecycle: {run_until: drained}", "stores 'file' is not installed"),
        ("lifecycle: {exit_code_map: {5: 0}}", "lifecycle.exit_code_map"),
        (
            "workflows: [{name: w, steps: {a: {kind: mcp.tool, server: gone}}}]",
            "workflows[0].steps.a.server: there is no MCP server",
        ),
        ("workflows: [{file: gone.yaml}]", "workflows[0]"),
        ("workflows: [{name: w, steps: {}}, {name: w, steps: {}}]", "is the name of workflows[0] too"),
        ("a2a: {listen: 'https://0.0.0.0:1'}", "a2a: unknown key"),
    ],
)
def test_errors(loaded: Any, tmp_path: Path, text: str, part: str) -> None:
    got = loaded(tmp_path, text=text)
    assert got.document is None
    assert part in loaded.told(got)


@pytest.mark.parametrize("kind", ["none", "memory"])
def test_warnings_do_not_stop(loaded: Any, tmp_path: Path, kind: str) -> None:
    got = loaded(tmp_path, text=f"store: {{kind: {kind}}}")
    assert got.document is not None
    assert [f.level for f in got.findings] == ["warning"]


def test_the_trifecta_is_refused_and_may_be_admitted(loaded: Any, tmp_path: Path) -> None:
    text = """
mcp:
  servers:
    - {name: web, endpoint: https://a, tags: {"*": [untrusted_input]}}
    - {name: crm, endpoint: https://b, tags: {"*": [sensitive], "send*": [sensitive, egress]}}
"""
    got = loaded(tmp_path, text=text)
    assert got.document is None and "egress (crm.send*)" in loaded.told(got)
    assert loaded(tmp_path, "--allow-trifecta", text=text).document is not None
    assert loaded(tmp_path, "--agent.tools.mcp", "crm.*", text=text).document is not None
    assert loaded(tmp_path, "--tools.disabled", "crm.send*", text=text).document is not None


STEP = """
mcp:
  servers:
    - {name: web, endpoint: https://a, tags: {"*": [untrusted_input]}}
    - {name: crm, endpoint: https://b, tags: {"*": [sensitive, egress]}}
agent: {tools: {mcp: ["web.*"]}}
workflows:
  - name: w
    steps:
      s: {kind: once}
      each: {kind: foreach, depends_on: [s], items: [1], steps: {a: {kind: agent, instruction: go, %s}}}
      f: {kind: finish, depends_on: [each]}
"""


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ('tools: ["*"]', "workflows[0].steps.each.steps.a.tools: one grant holds"),
        ('tools: ["{{inputs.glob}}"]', "workflows[0].steps.each.steps.a.tools: one grant holds"),
        ("servers: [webb]", "there is no MCP server 'webb' (did you mean web?)"),
    ],
)
def test_a_step_cannot_widen_its_grant_beyond_the_rule_of_two(
    loaded: Any, tmp_path: Path, fields: str, part: str
) -> None:
    assert part in loaded.told(loaded(tmp_path, text=STEP % fields))


@pytest.mark.parametrize("fields", ['tools: ["crm.*"]', 'tools: ["*"], servers: [web]', "servers: [crm]"])
def test_a_step_may_choose_other_tools(loaded: Any, tmp_path: Path, fields: str) -> None:
    assert "one grant" not in loaded.told(loaded(tmp_path, text=STEP % fields))
    assert "there is no" not in loaded.told(loaded(tmp_path, text=STEP % fields))


def test_a_secret_reference_stands_only_where_it_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(
        "intelligence: {endpoints: 'mock:final', model: '{{secret:X}}', headers: {x-team: '{{secret:X}}'}}\n"
        "agent: {instruction: 'say {{secret:X}} aloud'}\n"
        "vars: {x: '{{secret:X}}'}\n"
    )
    loaded = load(["-c", "a.yml"], {}, tmp_path)
    assert [f.path for f in loaded.errors] == ["intelligence.model"]


def test_a_drain_must_fit_into_the_grace_of_its_pod(tmp_path: Path) -> None:
    def said(**environ: str) -> list[tuple[str, str]]:
        found = load(["--instruction", "x"], environ, tmp_path).findings
        return [(f.level, f.path) for f in found if "drain" in f.path or "GRACE" in f.path]

    assert said(AGENT_POD_GRACE_SECONDS="30") == []
    assert said(AGENT_POD_GRACE_SECONDS="25") == [("warning", "lifecycle.drain_timeout")]
    assert said(AGENT_POD_GRACE_SECONDS="soon") == [("warning", "AGENT_POD_GRACE_SECONDS")]
