"""Credentials: where they may stand, that they never show, and when they are resolved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentd.config.effective import effective
from agentd.errors import SecretMissing

SECRET = "hunter2-hunter2"


def test_a_literal_from_outside_becomes_a_reference(loaded: Any, tmp_path: Path) -> None:
    env = {"AGENTD_INTELLIGENCE_TOKEN": SECRET, "AGENT_INTELLIGENCE_TOKEN_2": SECRET + "2"}
    got = loaded(
        tmp_path, "--intelligence.headers.x-api-key", SECRET, "--intelligence", "https://a/v1,https://b/v1", env=env
    )
    assert got.document is not None, loaded.told(got)
    assert SECRET not in repr(got.document) + repr(got.secrets) + json.dumps(effective(got)) + loaded.told(got)
    assert got.secrets.resolve(got.document.intelligence.token or "") == SECRET
    assert got.secrets.resolve(got.document.intelligence.tokens["2"]) == SECRET + "2"
    assert got.secrets.resolve(got.document.intelligence.headers["x-api-key"]) == SECRET


@pytest.mark.parametrize(
    "text",
    [
        f"intelligence: {{token: {SECRET}}}",
        f"intelligence: {{headers: {{Authorization: Bearer {SECRET}}}}}",
        f"mcp: {{servers: [{{name: a, endpoint: https://a, headers: {{X-Api-Key: {SECRET}}}}}]}}",
        f"mcp: {{servers: [{{name: a, endpoint: 'https://u:{SECRET}@a'}}]}}",
    ],
)
def test_a_file_holds_references_only(loaded: Any, tmp_path: Path, text: str) -> None:
    got = loaded(tmp_path, text=text)
    assert got.document is None
    assert SECRET not in loaded.told(got) + json.dumps(effective(got))


def test_references_resolve_at_the_moment_of_use(loaded: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    secrets = loaded(tmp_path, env={"A": "1"}).secrets
    assert secrets.resolve("Bearer {{secret:A}}.{{secret-file:token}}") == "Bearer 1.one"
    file.write_text("two\n\n")
    assert secrets.resolve("{{secret-file:token}}") == "two\n"
    with pytest.raises(SecretMissing, match="NOPE"):
        secrets.resolve("{{secret:NOPE}}")


def test_all_missing_ones_are_reported_together_and_may_be_asked_for(loaded: Any, tmp_path: Path) -> None:
    text = 'intelligence: {token: "{{secret:A}}", headers: {x: "{{secret:B}}", y: "{{secret-file:gone}}"}}'
    got = loaded(tmp_path, text=text)
    assert {f.path for f in got.secrets.missing(got.value)} == {
        "intelligence.token",
        "intelligence.headers.x",
        "intelligence.headers.y",
    }
    got.secrets.prompt(got.value, lambda prompt: "given " + prompt)
    assert [f.path for f in got.secrets.missing(got.value)] == ["intelligence.headers.y"]
    assert got.secrets.resolve("{{secret:A}}") == "given A: "


def test_prose_is_the_authors(loaded: Any, tmp_path: Path) -> None:
    got = loaded(tmp_path, "--instruction", "write {{secret:X}} and {{mustache}}")
    assert got.document is not None and got.secrets.missing(got.value) == []
