"""Text to values: YAML 1.2 scalars, what is refused and where, JSON with comments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.config.syntax import SyntaxFault, parse_any, parse_json, parse_yaml

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "scalars_expected.json").read_text())
VARS = parse_yaml((DATA / "scalars.yaml").read_text()).value["vars"]


@pytest.mark.parametrize("name", EXPECTED["must"])
def test_scalars_mean_what_they_must(name: str) -> None:
    assert VARS[name] == EXPECTED["must"][name]
    assert type(VARS[name]) is type(EXPECTED["must"][name])


@pytest.mark.parametrize("name", EXPECTED["one_documented_answer"])
def test_other_scalars_have_one_documented_answer(name: str) -> None:
    assert VARS[name] in EXPECTED["one_documented_answer"][name]


@pytest.mark.parametrize("name", EXPECTED["never"])
def test_scalars_never_change_silently(name: str) -> None:
    assert VARS[name] != EXPECTED["never"][name]


def test_values_survive_json() -> None:
    assert json.loads(json.dumps(VARS, allow_nan=False)) == VARS


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ("a: 1\nb:\n  c: 2\n  c: 3\n", 4, 3, "duplicate key 'c'"),
        ("a: &x 1\n", 1, 4, "anchors"),
        ("a: 1\nb: *x\n", 2, 4, "alias"),
        ("a: !!int '1'\n", 1, 4, "tags"),
        ("a: 1\n---\nb: 2\n", 2, 1, "one document"),
        ("a: [1, 2\n", 2, 1, ""),
        ("? [a]\n: 1\n", 1, 3, "plain string"),
        ("a: {{secret:X}}\n", 1, 5, "quote"),
    ],
)
def test_refused_with_line_and_column(text: str, line: int, column: int, word: str) -> None:
    with pytest.raises(SyntaxFault) as caught:
        parse_yaml(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert word in caught.value.message


def test_keys_stay_text() -> None:
    assert parse_yaml("{3: a, true: b, 1e3: c}").value == {"3": "a", "true": "b", "1e3": "c"}


def test_json_has_comments_and_trailing_commas() -> None:
    text = '{\n // a comment with "quotes"\n "url": "https://x//y", /* more\n lines */ "list": [1, 2, /* , */ ],\n}'
    assert parse_json(text).value == {"url": "https://x//y", "list": [1, 2]}


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e999}', '{"a": 1,\n "a": 2}', '{"a": }', "[" * 100_000])
def test_json_refuses(text: str) -> None:
    with pytest.raises(SyntaxFault):
        parse_json(text)


def test_other_extensions_are_sniffed() -> None:
    assert parse_any('// c\n{"a": 1}', "x.conf").value == {"a": 1}
    assert parse_any("{a: 1}", "x.conf").value == {"a": 1}
    assert parse_any("\ufeffa: 1", "x").value == {"a": 1}


@given(st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    for parse in (parse_yaml, parse_json):
        try:
            json.dumps(parse(text).value, allow_nan=False)
        except SyntaxFault as fault:
            assert fault.line >= 1 and fault.column >= 0


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(_JSON)
def test_json_round_trips(value: Any) -> None:
    assert parse_json(json.dumps(value)).value == value
