"""The dotenv dialect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentd.config.dotenv import overlay, parse
from agentd.errors import UsageError

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "dotenv_expected.json").read_text())
READ = parse((DATA / "dialect.env").read_text(), "dialect.env", {})


@pytest.mark.parametrize("name", EXPECTED["both_agree"])
def test_what_parsers_agree_on(name: str) -> None:
    assert READ[name] == EXPECTED["both_agree"][name]


def test_where_they_differ_we_are_documented() -> None:
    assert {name: READ[name] for name in EXPECTED["differ_so_document"]} == {
        "HASH_IN": "123#4",
        "URL": "https://u:p@h.example/p?q=1#frag",
        "REF": "abc-x",
    }


def test_windows_line_ends() -> None:
    assert parse((DATA / "crlf.env").read_bytes().decode(), "crlf.env", {}) == EXPECTED["crlf.env"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ((DATA / "bad.env").read_text(), 2),
        ((DATA / "bad_name.env").read_text(), 1),
        ("A=1\n\n# note\n=3\n", 4),
        ("A='open\n", 1),
        ("A=1\nexport B\n", 2),
    ],
)
def test_a_malformed_line_is_named(text: str, line: int) -> None:
    with pytest.raises(UsageError, match=f"^x.env:{line}: "):
        parse(text, "x.env", {})


def test_the_real_environment_wins_and_later_files_beat_earlier(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A=a\nB=a\nC=a\n")
    (tmp_path / "b").write_text("B=b\nC=b\n")
    assert overlay({"C": "real"}, ["a", "b"], tmp_path) == {"A": "a", "B": "b", "C": "real"}
