"""Reading what models send, and writing what strict servers take."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.intelligence import wire

objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(max_size=3), s, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(objects, st.integers(0, 3), st.sampled_from(["", " ", "\n"]))
def test_an_object_is_the_same_however_often_it_was_encoded(value: dict[str, Any], layers: int, around: str) -> None:
    sent: Any = value
    for _ in range(layers):
        sent = around + json.dumps(sent) + around
    assert wire.read_arguments(sent) == (value, None)


@given(st.text() | st.floats() | st.integers() | st.lists(st.integers()) | st.booleans())
def test_anything_else_is_read_or_explained(value: Any) -> None:
    arguments, problem = wire.read_arguments(value)
    assert (arguments is None) != (problem is None)


@pytest.mark.parametrize(
    "value", ["[" * 100_000, '{"a":' * 100_000, '{"n": 1e999}', '{"n": Infinity}', "9" * 5000, "{}{}"]
)
def test_hostile_arguments_are_explained(value: str) -> None:
    arguments, problem = wire.read_arguments(value)
    assert arguments is None and problem and len(problem) < 200


def test_big_integers_keep_every_digit() -> None:
    assert wire.read_arguments('{"n": 123456789012345678901234567890}')[0] == {"n": 123456789012345678901234567890}


@given(st.text(st.characters(), max_size=30))
def test_what_is_written_is_utf_8(text: str) -> None:
    body = wire.to_bytes({"t": text})
    sent = json.loads(body.decode("utf-8"))["t"]
    assert sent == text or any("\ud800" <= c <= "\udfff" for c in text)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (3, 3),
        (3.0, 3),
        ("3", 3),
        (" 3 ", 3),
        (-1, None),
        (-1.5, None),
        ("-1", None),
        ("3.5", None),
        (None, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        ([], None),
        ({}, None),
        ("１２", None),
        ("9" * 30, None),
    ],
)
def test_counts(value: Any, count: int | None) -> None:
    assert wire.count(value) == count


@pytest.mark.parametrize(
    ("given_", "usage"),
    [
        ((1, 2, None), (1, 2, True)),
        ((None, None, 9), (9, 0, True)),
        ((None, 2, 9), (7, 2, True)),
        ((1, None, 9), (1, 8, True)),
        ((None, 2, None), (0, 2, False)),
        ((None, 9, 2), (0, 9, True)),
    ],
)
def test_usage_is_filled_in_from_the_total(given_: Any, usage: Any) -> None:
    found = wire.usage_of(*given_)
    assert (found.tokens_in, found.tokens_out, found.reported) == usage


def test_ids_are_kept_where_they_are_unique() -> None:
    assert wire.fresh_id("a", set()) == "a"
    assert wire.fresh_id("a", {"a"}) not in ("a", "")
    assert wire.fresh_id(None, {"call_1", "call_2"}) == "call_3"
    assert wire.fresh_id(7, {"x"}) == "call_2"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        (None, ""),
        ([{"text": "a"}, "b", {"type": "image"}, None, {"text": None}], "ab"),
        ({"text": "a"}, ""),
    ],
)
def test_text(content: Any, text: str) -> None:
    assert wire.text_of(content) == text
