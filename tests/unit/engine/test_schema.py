"""The published schema says what the checks say, as far as a schema can."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from agentd.engine.definition import check
from agentd.engine.schema import workflow_schema
from agentd.testing.runs import kernel_kinds

KINDS = kernel_kinds()
SCHEMA = workflow_schema(KINDS)
VALIDATOR = jsonschema_rs.validator_for(SCHEMA, offline=True)

RIGHT: list[dict[str, Any]] = [
    {"kind": "emit", "payload": "{{inputs.x}}", "retry": {"max": 2, "backoff": "5s"}},
    {"kind": "sleep", "duration": "{{inputs.d}}"},
    {"kind": "sleep", "duration": "1h30m"},
    {"kind": "foreach", "over": "inputs.l", "body": {"x": {"kind": "noop"}}, "batch": {"size": "{{inputs.n}}"}},
    {"kind": "foreach", "over": [1], "body": {"kind": "noop"}},
    {"kind": "parallel", "branches": {"a": {"x": {"kind": "emit"}}}},
    {"kind": "http", "url": "https://example.com", "json": {"a": 1}, "timeout": 3},
    {"kind": "agent", "instruction": "do", "output_schema": {"type": "object"}, "when": "inputs.x == 1"},
]
WRONG: list[dict[str, Any]] = [
    {},
    {"kind": "nonsense"},
    {"kind": "emit", "payloads": 1},
    {"kind": "sleep"},
    {"kind": "parallel", "branches": {"a": {"x": {"kind": "emit", "y": 1}}}},
    {"kind": "emit", "retry": {"maximum": 1}},
    {"kind": "noop", "on_error": "ignore"},
]


def workflow(step: dict[str, Any]) -> dict[str, Any]:
    steps = {"s": {"kind": "manual"}, "a": {"depends_on": "s", **step}, "f": {"kind": "finish", "depends_on": "a"}}
    return {"name": "w", "steps": steps}


@pytest.mark.parametrize("step", RIGHT)
def test_both_let_it_through(step: dict[str, Any]) -> None:
    assert check(workflow(step), KINDS) == []
    assert [str(e) for e in VALIDATOR.iter_errors(workflow(step))] == []


@pytest.mark.parametrize("step", WRONG)
def test_both_refuse(step: dict[str, Any]) -> None:
    assert check(workflow(step), KINDS)
    assert not VALIDATOR.is_valid(workflow(step))


def test_every_field_is_described() -> None:
    silent = [
        f"{name}.{field}"
        for name, kind in SCHEMA["$defs"].items()
        for field, schema in kind.get("properties", {}).items()
        if field != "kind" and not schema.get("description") and "$ref" not in schema
    ]
    assert silent == []


def test_every_kind_has_its_fields() -> None:
    for spec in (*KINDS.starts.values(), *KINDS.steps.values()):
        assert spec.fields.model_json_schema()["type"] == "object"
