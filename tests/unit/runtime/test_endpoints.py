"""Which credential goes to which endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentd.config.load import load
from agentd.runtime.work import model_endpoints

TWO = "https://a.example/v1, https://b.example/v1"
OWN = """
intelligence:
  endpoints: [https://a.example/v1, https://b.example/v1]
  token: "{{secret:ALL}}"
  tokens: {"2": "{{secret:OWN}}"}
"""


def credentials(tmp_path: Path, *args: str, env: dict[str, str] | None = None) -> list[tuple[Any, Any]]:
    loaded = load(args, {"ALL": "for-all", "OWN": "for-two", **(env or {})}, tmp_path)
    assert loaded.document is not None, loaded.errors
    return [(e["token"], e["token_file"]) for e in model_endpoints(loaded.document, loaded.secrets)]


def test_a_file_gives_an_endpoint_its_own(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN)
    assert credentials(tmp_path, "-c", "own.yaml") == [("for-all", None), ("for-two", None)]


@pytest.mark.parametrize("flag", ["--intelligence.tokens.2=for-two", '--intelligence.tokens={"2": for-two}'])
def test_so_does_a_flag(tmp_path: Path, flag: str) -> None:
    found = credentials(tmp_path, "--intelligence", TWO, "--intelligence-token", "for-all", flag)
    assert found == [("for-all", None), ("for-two", None)]


def test_so_does_the_environment(tmp_path: Path) -> None:
    env = {"AGENTD_INTELLIGENCE_TOKEN_1": "one", "AGENT_INTELLIGENCE_TOKEN_2_FILE": "two.txt"}
    assert credentials(tmp_path, "--intelligence", TWO, env=env) == [("one", None), (None, "two.txt")]
