"""What a definition may say, and what is said of one that may not be."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agentd.engine.definition import Kinds, check, compile_plan, definition_hash
from agentd.engine.starts import InputsInvalid, passes, render_inputs
from agentd.errors import ConfigError
from agentd.ports.schedule import ScheduleRuleSpec
from agentd.testing.runs import kernel_kinds

KINDS = kernel_kinds()


def found(definition: Any, kinds: Kinds = KINDS) -> dict[str, str]:
    return dict(check(definition, kinds))


def steps(**more: Any) -> dict[str, Any]:
    return {
        "name": "w",
        "steps": {"s": {"kind": "manual"}, **more, "f": {"kind": "finish", "depends_on": list(more) or "s"}},
    }


def step(**fields: Any) -> dict[str, str]:
    """Findings of one step `a`, by path below it."""
    said = check(steps(a={"depends_on": "s", **fields}), KINDS)
    return {path.removeprefix("steps.a").lstrip("."): message for path, message in said}


def test_a_right_one_has_no_findings() -> None:
    assert check(steps(a={"kind": "emit", "depends_on": "s"}), KINDS) == []


@pytest.mark.parametrize(
    "wrong", [None, [], "w", {"name": "w"}, {"name": "w", "steps": []}, {"name": "w", "steps": {}}]
)
def test_no_workflow_at_all(wrong: Any) -> None:
    assert check(wrong, KINDS)


def test_every_finding_at_once() -> None:
    wrong = {
        "name": "9",
        "wat": 1,
        "priority": "urgent",
        "steps": {
            "a": {"kind": "emit", "depends_on": "b"},
            "b": {"kind": "emit", "depends_on": ["a", "gone"], "on_error": "goto:nowhere"},
            "c": {"kind": "switch", "on": 1, "cases": {"x": "nobody"}},
            "d e": {"kind": "http", "urll": "x", "depends_on": "a"},
            "g": {"kind": "agnt", "depends_on": "a"},
            "h": "no step",
            "i": {"kind": "noop"},
        },
    }
    said = check(wrong, KINDS)
    text = "\n".join(f"{path}: {message}" for path, message in said)
    for part in (
        "name: String should match",
        "wat: unknown field of a workflow",
        "priority: Input should be 'low'",
        "steps: no start node",
        "steps: no step of kind finish",
        "form a cycle: a -> b -> a",
        'steps.b.depends_on: there is no step "gone"',
        'steps.b.on_error: there is no step "nowhere"',
        'steps.c.cases.x: there is no step "nobody"',
        "steps.d e: a step's id",
        'steps.d e.urll: unknown field of kind http; did you mean "url"?',
        "steps.d e.url: required",
        'steps.g.kind: unknown kind "agnt"; did you mean "agent"?',
        "steps.h: expected a step",
        "steps.i: cannot be reached",
    ):
        assert part in text, (part, text)


def test_templates_are_checked_at_load() -> None:
    assert 'there is no step "b"' in step(kind="emit", payload={"x": ["{{steps.b.output}}"]})["payload"]
    assert 'no name "input"' in step(kind="emit", payload="{{input.x}}")["payload"]
    assert "inputs" in step(kind="emit", payload="{{input.x}}")["payload"]
    assert "steps.s has status" in step(kind="emit", payload="{{steps.s.result}}")["payload"]
    assert "env has no" in step(kind="emit", payload="{{env.now}}")["payload"]
    assert "cannot read" in step(kind="emit", payload="{{a b}}")["payload"]
    assert "does not come before" in step(kind="emit", payload="{{steps.f.output}}")["payload"]
    assert step(kind="emit", payload="{{steps.f.output | null}} {{secret:TOKEN}}") == {}
    assert 'no name "item"' in step(kind="emit", payload="{{item}}")["payload"]


def test_conditions_are_checked_at_load() -> None:
    assert "cannot read" in step(kind="emit", when="steps.s.output = 3")["when"]
    assert "quotes" in step(kind="emit", when="inputs.kind == bug")["when"]
    assert "pip install 'agentd[cel]'" in step(kind="emit", when="CEL: inputs.x > 1")["when"]
    assert "pip install 'agentd[cel]'" in step(kind="emit", payload=["CEL:1"])["payload.1"[:7]]


def test_expressions_of_a_plugin() -> None:
    def compiler(text: str) -> Any:
        if "(" in text:
            raise ValueError("no parentheses")
        return lambda names: eval(text, {}, dict(names))

    kinds = Kinds(KINDS.starts, KINDS.steps, expressions=compiler)
    plan = compile_plan(steps(a={"kind": "assign", "depends_on": "s", "value": "CEL: inputs['n'] + 1"}), kinds)
    from agentd.testing.runs import Driver

    ended = Driver(plan, inputs={"n": 2}).finished
    assert ended is not None and ended.output == 3
    assert (
        "no parentheses"
        in found(steps(a={"kind": "assign", "depends_on": "s", "value": "CEL:f()"}), kinds)["steps.a.value"]
    )


def test_schemas_are_well_formed() -> None:
    assert "JSON Schema" in step(kind="emit", output_schema={"type": "strin"})["output_schema"]
    assert "JSON Schema" in step(kind="validate", value=1, schema={"$ref": "http://127.0.0.1:1/x"})["schema"]
    assert "JSON Schema" in found({**steps(), "inputs": {"schema": {"type": 1}}})["inputs.schema"]
    assert "JSON Schema" in found({**steps(), "state": {"v": {"schema": {"type": 1}}}})["state.v.schema"]


def test_rules_of_kinds() -> None:
    assert "needs an end" in step(kind="iterate", body={"x": {"kind": "noop"}})[""]
    assert "max_iterations" in step(kind="iterate", body={"x": {"kind": "noop"}}, max_iterations=10001)
    assert "only 1 branches" in step(kind="race", branches={"x": {"y": {"kind": "noop"}}}, min_success=2)["min_success"]
    assert "required when waiting on signal" in step(kind="wait", on="signal")["name"]
    assert "performs nothing" in step(kind="noop", cache={"key": "x"})["cache"]
    assert "belongs to the workflow" in step(kind="subgraph", body={"x": {"kind": "finish"}})["body.x.kind"]
    assert "start node" in step(kind="subgraph", body={"x": {"kind": "manual"}})["body.x.kind"]
    assert "expected steps" in step(kind="subgraph", body={})["body"]
    assert "duration" in step(kind="sleep", duration="1:30")["duration"]
    assert "memory cannot be read here" in step(kind="assert", condition="memory.x == 1")["condition"]


def test_caps() -> None:
    many = {f"n{i}": {"kind": "noop", "depends_on": "s"} for i in range(511)}
    assert "more than 512 steps" in found(steps(**many))["steps"]
    nested: dict[str, Any] = {"kind": "noop"}
    for _ in range(5):
        nested = {"kind": "subgraph", "body": {"x": nested}}
    assert any("deeper than 4" in message for message in step(**nested).values())


def test_a_switch_or_a_goto_is_a_dependency() -> None:
    right = steps()
    right["steps"] = {
        "s": {"kind": "manual"},
        "w": {"kind": "switch", "depends_on": "s", "on": "inputs.x", "cases": {"1": "a"}, "default": "f"},
        "a": {"kind": "emit", "on_error": "goto:h"},
        "h": {"kind": "noop"},
        "f": {"kind": "finish", "depends_on": ["a", "h"]},
    }
    assert check(right, KINDS) == []
    right["steps"]["a"]["depends_on"] = ["h"]
    right["steps"]["h"]["depends_on"] = ["s"]
    assert check(right, KINDS) == []  # a goto may lead back
    right["steps"]["w"]["depends_on"] = ["s", "a"]
    assert "cycle" in found(right)["steps"]  # a switch may not


def test_the_hash_is_of_what_is_said_not_how() -> None:
    a = steps(a={"kind": "emit", "depends_on": "s"})
    b = dict(reversed(copy.deepcopy(a).items()))
    assert compile_plan(a, KINDS).hash == compile_plan(b, KINDS).hash == definition_hash(a)
    c = copy.deepcopy(a)
    c["steps"]["a"]["payload"] = 1
    assert compile_plan(c, KINDS).hash != compile_plan(a, KINDS).hash
    assert len(compile_plan(a, KINDS).hash) == 64


def test_yaml_words_as_cases() -> None:
    definition = steps()
    definition["steps"]["w"] = {
        "kind": "switch",
        "depends_on": "s",
        "on": "inputs.x",
        "cases": {True: "f", None: "f"},
    }
    assert compile_plan(definition, KINDS).graph.nodes[2].fields["cases"] == {"true": "f", "null": "f"}


def test_compile_raises_every_finding() -> None:
    with pytest.raises(ConfigError) as raised:
        compile_plan({"name": "w", "steps": {"a": {"kind": "x"}}}, KINDS)
    assert len(raised.value.findings) >= 3


def test_missing_kinds_name_what_to_install() -> None:
    kinds = Kinds(KINDS.starts, KINDS.steps, missing=lambda slot, kind: f"{slot} {kind}: pip install 'agentd[x]'")
    assert "pip install" in found(steps(a={"kind": "a2a.send", "depends_on": "s"}), kinds)["steps.a.kind"]


def schedule(**fields: Any) -> dict[str, str]:
    def parse(text: str, zone: Any) -> Any:
        if text != "* * * * *":
            raise ValueError("five fields")

    kinds = Kinds(KINDS.starts, KINDS.steps, {"cron": ScheduleRuleSpec(field="cron", parse=parse)})
    return found(
        {"name": "w", "steps": {"s": {"kind": "schedule", **fields}, "f": {"kind": "finish", "depends_on": "s"}}}, kinds
    )


def test_schedules_say_when_exactly_once() -> None:
    assert (
        schedule(every="5m")
        == schedule(at="2030-01-01T00:00:00Z")
        == schedule(cron="* * * * *", tz="Europe/Berlin")
        == {}
    )
    assert (
        "exactly one of" in schedule()["steps.s"] and "exactly one of" in schedule(every=1, cron="* * * * *")["steps.s"]
    )
    assert "five fields" in schedule(cron="x")["steps.s.cron"]
    assert "time zone" in schedule(every=1, tz="Mars/Olympus")["steps.s.tz"]
    assert "instant" in schedule(at="tomorrow")["steps.s.at"]
    assert schedule(evry=1)["steps.s.evry"]


def test_inputs_of_a_start_node() -> None:
    definition = {
        **steps(),
        "inputs": {"schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}},
    }
    definition["steps"]["s"] = {
        "kind": "signal",
        "name": "go",
        "inputs": {"id": "{{payload.n}}", "by": "{{env.instance}}"},
        "filter": "n > 1",
    }
    plan = compile_plan(definition, KINDS)
    assert render_inputs(plan, "s", {"n": 3}, {"instance": "i"}) == {"id": 3, "by": "i"}
    assert passes(plan, "s", {"n": 2}, {}) and not passes(plan, "s", {"n": 1}, {}) and not passes(plan, "s", None, {})
    for payload in ({"n": "3"}, {}, None, []):
        with pytest.raises(InputsInvalid):
            render_inputs(plan, "s", payload, {"instance": "i"})
    definition["steps"]["s"]["inputs"] = {"id": "{{steps.s.output}}"}
    assert 'no name "steps"' in found(definition)["steps.s.inputs"]


def test_inputs_are_known_when_their_schema_is_closed() -> None:
    schema = {"type": "object", "properties": {"id": {}}, "additionalProperties": False}
    definition = {
        **steps(a={"kind": "emit", "depends_on": "s", "payload": "{{inputs.idd}}"}),
        "inputs": {"schema": schema},
    }
    assert 'did you mean "id"?' in found(definition)["steps.a.payload"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"kind": "agent", "skills": ["a"]}, "skills"),
        ({"kind": "agent", "otel": {"a": 1}}, "otel"),
        ({"kind": "emit", "budget": 100}, "budget"),
        ({"kind": "agent", "budget": 0}, "budget"),
        ({"kind": "agent", "budget": {"requests": 1}}, "budget"),
        ({"kind": "subagent"}, "kind"),
        ({"kind": "wait", "on": "webhook"}, "on"),
    ],
)
def test_nothing_is_accepted_that_nobody_serves(fields: dict[str, Any], path: str) -> None:
    assert any(found == path or found.startswith(f"{path}.") for found in step(**fields))


@pytest.mark.parametrize("budget", [100, "100", {"tokens": 100}])
def test_a_budget_is_a_number_of_tokens(budget: Any) -> None:
    plan = compile_plan(steps(a={"kind": "agent", "depends_on": "s", "budget": budget}), KINDS)
    assert next(n for n in plan.graph.nodes if n.id == "a").options == {"budget": 100}
