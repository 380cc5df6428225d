"""Each tool's schema judged alone: what passes, what is repaired, what is hopeless."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.mcp.schemas import Hopeless, repair_input_schema, resolve

GOOD = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0}, "y": {"$ref": "#/$defs/Y"}},
    "required": ["x"],
    "additionalProperties": False,
    "$defs": {"Y": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Y"}}}},
}


def test_a_good_schema_passes_verbatim():
    assert repair_input_schema(GOOD) == (GOOD, [])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
        ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
        ({"type": "object", "properties": None}, {"type": "object", "properties": {}}),
        ({"properties": {"x": True}}, {"type": "object", "properties": {"x": {}}}),
        (
            {"properties": {"x": {"type": "array"}}},
            {"type": "object", "properties": {"x": {"type": "array", "items": {}}}},
        ),
        ({"properties": {"x": {"type": "any"}}}, {"type": "object", "properties": {"x": {}}}),
        ({"properties": {"x": {"$ref": "#/$defs/Gone"}}}, {"type": "object", "properties": {"x": {}}}),
        ({"properties": {"x": {"required": True}}}, {"type": "object", "properties": {"x": {}}}),
        (
            {"properties": {"x": {"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False}}},
            {"type": "object", "properties": {"x": {"exclusiveMinimum": 1, "maximum": 9}}},
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {}}}}},
            {"type": "object", "properties": {"a": {}}, "$defs": {"A": {"type": "object", "properties": {"a": {}}}}},
        ),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
        ),
        (
            {"oneOf": [{"properties": {"a": {}, "c": {}}, "required": ["a", "c"]}, {"required": ["c"]}]},
            {"type": "object", "properties": {"a": {}, "c": {}}, "required": ["c"]},
        ),
    ],
)  # fmt: skip
def test_what_can_be_repaired_is(given, expected):
    assert repair_input_schema(given)[0] == expected


def test_a_schema_with_a_remote_reference_does_not_lead_there():
    schema, notes = repair_input_schema({"properties": {"x": {"$ref": "http://127.0.0.1:9/a.json", "title": "X"}}})
    assert schema["properties"]["x"] == {"title": "X"}
    assert "http://127.0.0.1:9/a.json" in notes[0]


@pytest.mark.parametrize(
    "schema",
    [
        7,
        [],
        "object",
        {"type": "string"},
        {"type": "object", "properties": {"x": "string"}},
        {"type": "object", "properties": ["x"]},
        {"anyOf": {}},
        {"$ref": "#"},
        {"$ref": "#/$defs/Gone"},
    ],
)
def test_what_cannot_is_hopeless(schema):
    with pytest.raises(Hopeless):
        repair_input_schema(schema)


def test_a_schema_without_an_end_is_hopeless():
    schema: dict = {}
    for _ in range(200):
        schema = {"type": "object", "properties": {"x": schema}}
    with pytest.raises(Hopeless):
        repair_input_schema(schema)


words = st.sampled_from(
    ["type", "properties", "items", "$ref", "$defs", "required", "anyOf", "allOf", "minimum", "exclusiveMinimum", "x"]
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["object", "string", "#", "#/$defs/x", "#/anyOf/0", "http://h/x"])
)
anything = st.recursive(
    leaves, lambda j: st.lists(j, max_size=3) | st.dictionaries(words, j, max_size=4), max_leaves=20
)


@given(anything)
def test_whatever_comes_is_repaired_for_good_or_hopeless(schema):
    before = json.dumps(schema)
    try:
        repaired, _ = repair_input_schema(schema)
    except Hopeless:
        return
    finally:
        assert json.dumps(schema) == before, "the listing itself is left alone"
    assert repaired["type"] == "object" and isinstance(repaired["properties"], dict)
    assert all(resolve(repaired, ref) is not None for ref in references(repaired))
    assert repair_input_schema(repaired)[0] == repaired


def references(schema):
    """Every `$ref` where a schema stands."""
    if "$ref" in schema:
        yield schema["$ref"]
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from references(part)
    for key in ("anyOf", "allOf"):
        for part in schema.get(key, []):
            yield from references(part)
    for key in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from references(schema[key])
