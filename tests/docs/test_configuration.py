"""What `docs/configuration.md` says in tables, the code does; its reference is up to date."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentd.config import dotenv
from agentd.config.instruction import read_instruction
from agentd.config.load import load
from agentd.config.syntax import parse_yaml
from agentd.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/configuration.md").read_text()


def table(first: str) -> list[list[str]]:
    """The rows of the table whose head begins with `first`."""
    text = PAGE.partition(f"| {first} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


def test_the_reference_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, "scripts/config_reference.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: make generate"


@pytest.mark.parametrize(("written", "becomes"), table("written"))
def test_scalars(written: str, becomes: str) -> None:
    for text in [*quoted(written), *([""] if "nothing" in written else [])]:
        wanted: Any = text if becomes == "a string" else json.loads(quoted(becomes)[0])
        assert parse_yaml(f"key: {text}\n").value == {"key": wanted}


@pytest.mark.parametrize(("line", "value"), table("in the file"))
def test_the_dotenv_dialect(line: str, value: str) -> None:
    found = dotenv.parse(quoted(line)[0] + "\n", "x.env", {"HOME_OF_IT": "there"})
    assert found == {"A": quoted(value)[0]}


def test_the_dotenv_example_can_be_read() -> None:
    (example,) = re.findall(r"```dotenv\n(.*?)```", PAGE, re.DOTALL)
    found = dotenv.parse(example, "x.env", {})
    assert found["GATEWAY_TOKEN"] == "123#4" and found["URL"] == "https://gw.example/v1?q=1#frag"


def test_every_setting_of_the_text_is_one(tmp_path: Path) -> None:
    known = set(load([], {}, tmp_path).table.by_path)
    for path in re.findall(r"`((?:agent|intelligence|mcp|store|limits|security|observability)\.[a-z_.]+)`", PAGE):
        assert path in known, path


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("say hello", None),
        ("one\ntwo.md", None),
        ("hello", None),
        ("https://h.example/a.md", "no installed plugin reads https"),
        ("policy.md", "does not exist"),
        ("NOTES.TXT", "does not exist"),
        ("./policy", "does not exist"),
        ("~/policy", "does not exist"),
    ],
)
def test_a_string_is_classified_as_told(tmp_path: Path, given: str, part: str | None) -> None:
    if part is None:
        assert read_instruction(given, tmp_path) == given
        return
    with pytest.raises(ConfigError, match=part):
        read_instruction(given, tmp_path)


def test_a_directory_is_joined(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("two")
    (tmp_path / "a.md").write_text("one")
    assert read_instruction("./", tmp_path) == "one\n\ntwo"
