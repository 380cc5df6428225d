"""Steps that hold steps."""

from __future__ import annotations

from typing import Any

import pytest

from agentd.engine.decision import Done, Failed, TimedOut
from agentd.testing.runs import Driver


def workflow(step: dict[str, Any], **more: Any) -> dict[str, Any]:
    steps = {"s": {"kind": "manual"}, "x": {"depends_on": "s", **step}, "f": {"kind": "finish", "depends_on": "x"}}
    return {"name": "w", "steps": steps, **more}


def emit(payload: Any = None, **more: Any) -> dict[str, Any]:
    return {"kind": "emit", "payload": payload, **more}


def echo(effect: Any) -> Any:
    return effect.fields["payload"]


def output(driver: Driver) -> Any:
    assert driver.finished is not None and driver.finished.status == "completed", driver.finished
    return driver.finished.output


EACH = {"kind": "foreach", "over": "inputs.l", "as": "n", "body": {"pull": emit("{{n}}/{{index}}/{{item}}")}}


def test_foreach_is_positional_whatever_the_order() -> None:
    d = Driver(workflow(EACH), echo, inputs={"l": ["a", "b", "c"]})
    assert list(d.effects) == ["x[0].pull", "x[1].pull", "x[2].pull"]
    d.go(lambda pending: pending[-1])
    assert output(d) == ["a/0/a", "b/1/b", "c/2/c"]
    assert output(Driver(workflow(EACH), inputs={"l": []})) == []


def test_foreach_over_no_list_fails() -> None:
    d = Driver(workflow(EACH), inputs={"l": "abc"})
    assert d.finished is not None and d.finished.err is not None and "must be a list" in d.finished.err["message"]


def test_foreach_bounds_what_goes_on_at_once_and_keeps_waves() -> None:
    d = Driver(workflow({**EACH, "batch": {"size": 3, "parallel": 2}}), echo, inputs={"l": list(range(5))})
    assert list(d.effects) == ["x[0].pull", "x[1].pull"]
    d.do("x[1].pull")
    assert list(d.effects) == ["x[0].pull", "x[2].pull"]
    d.do("x[2].pull")
    assert list(d.effects) == ["x[0].pull"]  # the wave of three is not over
    d.do("x[0].pull")
    assert list(d.effects) == ["x[3].pull", "x[4].pull"]
    d.go()
    assert output(d)[4] == "4/4/4"


def test_foreach_keeps_a_rate_through_a_restart() -> None:
    d = Driver(workflow({**EACH, "batch": {"rate": "2/1s"}}), echo, inputs={"l": [0, 1, 2]})
    assert list(d.effects) == ["x[0].pull"] and [w.until for w in d.waits.values()] == [1000.5, 1001.0]
    d.crash()
    assert list(d.effects) == ["x[0].pull"] and [w.until for w in d.waits.values()] == [1000.5, 1001.0]
    d.fire("x[1]~")
    d.crash()
    assert sorted(d.effects) == ["x[0].pull", "x[1].pull"] and list(d.waits) == ["x[2]~"]
    d.go()
    assert len(output(d)) == 3


def test_foreach_collects_failures_when_it_may_continue() -> None:
    d = Driver(workflow({**EACH, "on_error": "continue"}), echo, inputs={"l": ["a", "b"]})
    d.settle("x[0].pull", Failed("tool", "no", retry=False))
    d.do("x[1].pull")
    error = {"code": "tool", "message": "no", "step": "x[0].pull"}
    assert output(d) == [{"index": 0, "error": error}, "b/1/b"]
    d = Driver(workflow(EACH), echo, inputs={"l": ["a", "b"]})
    decision = d.settle("x[0].pull", Failed("tool", "no", retry=False))
    assert decision.cancelled == ["x[1].pull"]
    assert decision.finished is not None and decision.finished.err is not None
    assert decision.finished.err["step"] == "x[0].pull"


def test_batch_groups_and_cuts() -> None:
    body = {"p": emit("{{batch}}")}
    d = Driver(workflow({"kind": "batch", "over": "inputs.l", "size": 2, "by": "k", "body": body}), echo,
               inputs={"l": [{"k": 1, "v": 1}, {"k": 2, "v": 2}, {"k": 1, "v": 3}, {"k": 1, "v": 4}]})  # fmt: skip
    d.go()
    assert [[e["v"] for e in batch] for batch in output(d)] == [[1, 3], [4], [2]]


def test_parallel_names_its_branches() -> None:
    branches = {
        "fast": {"call": emit(1)},
        "slow": {"one": emit(2), "two": emit("{{steps.one.output}}!", depends_on="one")},
    }
    d = Driver(workflow({"kind": "parallel", "branches": branches}), echo)
    assert sorted(d.effects) == ["x{fast}.call", "x{slow}.one"]
    d.go()
    assert output(d) == {"fast": 1, "slow": "2!", "_errors": {}}
    d = Driver(workflow({"kind": "parallel", "branches": branches, "on_error": "continue"}), echo)
    d.settle("x{fast}.call", Failed("a", "b", retry=False))
    d.go()
    assert output(d)["_errors"]["fast"]["code"] == "a" and "fast" not in output(d)


def test_the_first_of_a_race_wins_and_the_others_are_abandoned() -> None:
    branches = {"a": {"x": emit("a")}, "b": {"x": emit("b")}, "c": {"x": emit("c")}}
    d = Driver(workflow({"kind": "race", "branches": branches}), echo)
    d.settle("x{a}.x", Failed("no", "no", retry=False))
    decision = d.do("x{b}.x")
    assert decision.cancelled == ["x{c}.x"] and output(d) == {"winner": "b", "output": "b"}
    d = Driver(workflow({"kind": "race", "branches": branches, "min_success": 2}), echo)
    d.do("x{c}.x")
    d.do("x{a}.x")
    assert output(d) == {"winner": ["c", "a"], "output": {"c": "c", "a": "a"}}
    d = Driver(workflow({"kind": "race", "branches": branches, "min_success": 2}), echo)
    d.settle("x{c}.x", Failed("no", "no", retry=False))
    d.settle("x{a}.x", Failed("no", "no", retry=False))
    assert d.finished is not None and d.finished.status == "failed"


def test_a_race_that_is_over_stays_over_after_a_restart() -> None:
    branches = {"a": {"x": emit("a"), "y": emit("y", depends_on="x")}, "b": {"x": emit("b")}}
    steps = workflow({"kind": "race", "branches": branches})
    steps["steps"]["z"] = {"kind": "emit", "depends_on": "x", "payload": "{{steps.x.output.winner}}"}
    steps["steps"]["f"] = {"kind": "finish", "depends_on": "z"}
    d = Driver(steps, echo)
    d.do("x{a}.x")
    d.do("x{b}.x")
    d.crash()
    assert list(d.effects) == ["z"] and d.effects["z"].fields["payload"] == "b"


def test_iterate_until_while_and_collect() -> None:
    body = {"a": emit("{{iteration}}")}
    d = Driver(workflow({"kind": "iterate", "body": body, "until": "steps.a.output >= 2", "collect": True}), echo)
    d.go()
    assert output(d) == [0, 1, 2] and [entry for entry, _ in d.performed] == ["x[0].a", "x[1].a", "x[2].a"]
    d = Driver(workflow({"kind": "iterate", "body": body, "while": "iteration < 2"}), echo)
    d.go()
    assert output(d) == 1
    d = Driver(
        workflow({"kind": "iterate", "body": {"a": emit("{{steps.x.output | none}}")}, "max_iterations": 2}), echo
    )
    d.go()
    assert output(d) == "none" and d.finished is not None
    d = Driver(workflow({"kind": "iterate", "body": body, "max_iterations": "{{inputs.n}}"}), echo, inputs={"n": 0})
    assert output(d) is None


def test_ten_thousand_pure_iterations_need_no_stack_and_no_record() -> None:
    body = {"a": {"kind": "assign", "value": "{{iteration}}"}}
    d = Driver(workflow({"kind": "iterate", "body": body, "until": "iteration == 9999"}))
    assert output(d) == 9999 and d.records == {}
    d = Driver(workflow({"kind": "iterate", "body": body, "while": True}))
    assert d.finished is not None and d.finished.err is not None and d.finished.err["code"] == "iterations"


def test_subgraph_yields_its_sinks() -> None:
    body = {"a": emit(1), "b": emit(2), "c": emit(3, depends_on="a")}
    d = Driver(workflow({"kind": "subgraph", "body": body}), echo)
    d.go()
    assert output(d) == {"b": 2, "c": 3}
    switch = {
        "w": {"kind": "switch", "on": "inputs.k", "cases": {"1": "a"}, "default": "b"}, "a": emit("A"), "b": emit("B"),
    }  # fmt: skip
    d = Driver(workflow({"kind": "subgraph", "body": switch}), echo, inputs={"k": 1})
    d.go()
    assert output(d) == "A"
    assert output(Driver(workflow({"kind": "subgraph", "body": {"kind": "assign", "value": 1}}))) == 1


def test_inner_steps_hide_outer_ones_and_see_the_rest() -> None:
    steps = {
        "s": {"kind": "manual"},
        "a": {"kind": "assign", "depends_on": "s", "value": "outer"},
        "b": {"kind": "assign", "depends_on": "s", "value": "B"},
        "x": {"kind": "subgraph", "depends_on": ["a", "b"], "body": {
            "a": {"kind": "assign", "value": "inner"},
            "y": {"kind": "assign", "depends_on": "a", "value": "{{steps.a.output}} {{steps.b.output}}"}}},
        "f": {"kind": "finish", "depends_on": "x"},
    }  # fmt: skip
    assert output(Driver({"name": "w", "steps": steps})) == "inner B"


def test_the_deadline_of_a_body() -> None:
    step = {"kind": "subgraph", "body": {"a": emit(1)}, "timeout": "5s", "on_error": "continue"}
    d = Driver(workflow(step), echo)
    assert d.waits["x"].until == 1005.0 and d.waits["x"].on == {"body": True}
    d.crash()
    assert d.waits["x"].until == 1005.0
    decision = d.settle("x", TimedOut())
    assert decision.cancelled == ["x[0].a"] or decision.cancelled == ["x.a"]
    d.crash()
    assert d.finished is not None and d.state.view()["x"]["status"] == "timeout"
    d = Driver(workflow(step), echo)
    assert d.do("x.a").cancelled == ["x"] and output(d) == 1


def test_a_body_is_entered_again_as_its_next_visit() -> None:
    step = {"kind": "subgraph", "body": {"a": emit(1)}, "retry": {"max": 1, "backoff": "2s"}}
    d = Driver(workflow(step), echo)
    d.settle("x.a", Failed("no", "no", retry=False))
    assert list(d.waits) == ["x~"]
    d.crash()
    assert list(d.waits) == ["x~"] and not d.effects
    d.fire("x~")
    assert list(d.effects) == ["x#2.a"]
    d.crash()
    assert list(d.effects) == ["x#2.a"]
    d.do("x#2.a")
    assert output(d) == 1


def test_going_back_over_a_body_abandons_it() -> None:
    steps = {
        "s": {"kind": "manual"},
        "a": {"kind": "noop", "depends_on": "s"},
        "x": {"kind": "foreach", "depends_on": "a", "over": [1, 2], "body": {"e": emit("{{item}}")}},
        "b": emit("b", depends_on="a", on_error="goto:a"),
        "f": {"kind": "finish", "depends_on": ["x", "b"], "output": "{{steps.x.output}}"},
    }
    d = Driver({"name": "w", "steps": steps}, echo)
    d.do("x[0].e")
    decision = d.settle("b", Failed("no", "no", retry=False))
    assert decision.cancelled == ["x[1].e"]
    assert sorted(d.effects) == ["b#2", "x#2[0].e", "x#2[1].e"]
    d.crash()
    d.go()
    assert output(d) == [1, 2]


@pytest.mark.parametrize("crash", [False, True])
def test_nested_bodies(crash: bool) -> None:
    inner = {"kind": "parallel", "branches": {"l": {"e": emit("{{item}}{{iteration}}")}, "r": {"e": emit("{{index}}")}}}
    each = {"kind": "foreach", "over": ["a", "b"], "body": {"p": inner}}
    d = Driver(workflow({"kind": "iterate", "max_iterations": 2, "collect": True, "body": {"each": each}}), echo)
    assert "x[0].each[1].p{l}.e" in d.effects
    while d.finished is None:
        d.do(list(d.effects)[-1])
        if crash:
            d.crash()
    assert output(d)[1] == [{"l": "a1", "r": 0, "_errors": {}}, {"l": "b1", "r": 1, "_errors": {}}]
    assert len({key for _, key in d.performed}) == len(d.performed) == 8


def test_late_answers_of_abandoned_steps_change_nothing() -> None:
    d = Driver(workflow({"kind": "race", "branches": {"a": {"x": emit("a")}, "b": {"x": emit("b")}}}), echo)
    d.do("x{a}.x")
    before = dict(d.records)
    d.settle("x{b}.x", Done("late"))
    assert d.records == before
