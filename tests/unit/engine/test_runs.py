"""Runs: what follows from what."""

from __future__ import annotations

from typing import Any

import pytest

from agentd.engine.decide import cancel, holds, settle
from agentd.engine.decision import Done, Failed, Limits, Run, TimedOut
from agentd.engine.state import idempotency_key
from agentd.errors import ConfigError
from agentd.ports.nodes import Suspend
from agentd.testing.runs import Driver

START = {"s": {"kind": "manual"}}


def workflow(steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "w", "steps": {**START, **steps}, **more}


def emit(after: str | list[str], payload: Any = None, **more: Any) -> dict[str, Any]:
    return {"kind": "emit", "depends_on": after, "payload": payload, **more}


def finish(after: str | list[str], output: Any = None, **more: Any) -> dict[str, Any]:
    return {"kind": "finish", "depends_on": after, **({} if output is None else {"output": output}), **more}


def echo(effect: Any) -> Any:
    return effect.fields.get("payload")


def status(driver: Driver, id: str) -> str:
    return str(driver.state.view()[id]["status"])


def test_a_chain_of_effects_costs_one_commit_each_and_carries_its_keys() -> None:
    d = Driver(
        workflow({"a": emit("s", "{{inputs.x}}"), "b": emit("a", "{{steps.a.output}}!"), "f": finish("b")}),
        echo,
        inputs={"x": 7},
    )
    assert d.effects["a"].fields["payload"] == 7
    assert d.effects["a"].key == idempotency_key("r", "a")
    d.do("a")
    assert [entry for entry, _ in d.act(settle(d.state, "a", Done(), 0)).records] == []  # said twice is said once
    d.do("b")
    assert d.finished is not None and (d.finished.status, d.finished.output) == ("completed", "7!")
    assert d.flushes == 3  # running a; done a + running b; done b (with the run's own end)
    assert len(d.effects) == 0


def test_done_and_next_running_are_one_commit() -> None:
    d = Driver(workflow({"a": emit("s"), "b": emit("a"), "f": finish("b")}))
    records = dict(d.do("a").records)
    assert records["a"]["status"] == "done" and records["b"]["status"] == "running"


def test_pure_steps_write_nothing() -> None:
    d = Driver(workflow({"x": {"kind": "assign", "depends_on": "s", "value": [1, 2]}, "f": finish("x")}))
    assert d.finished is not None and d.finished.output == [1, 2]
    assert d.records == {}


def test_a_guard_skips_and_the_run_goes_on() -> None:
    d = Driver(
        workflow({"a": emit("s", when="inputs.go == true"), "b": emit("a"), "f": finish("b")}), inputs={"go": False}
    )
    assert status(d, "a") == "skipped"
    assert list(d.effects) == ["b"]


def test_switch_prunes_what_nobody_chose() -> None:
    steps = {
        "w": {
            "kind": "switch",
            "depends_on": "s",
            "on": "inputs.k",
            "cases": {"a": "a", "true": ["b", "c"]},
            "default": "c",
        },
        "a": emit("w"),
        "a2": emit("a"),
        "b": emit("w"),
        "c": emit([]),
        "j": emit(["a2", "b"]),
        "f": finish(["j", "c"]),
    }
    d = Driver(workflow(steps), inputs={"k": "a"})
    assert list(d.effects) == ["a"] and status(d, "b") == status(d, "c") == "pruned"
    d = Driver(workflow(steps), inputs={"k": True})
    assert sorted(d.effects) == ["b", "c"] and status(d, "a2") == "pruned"
    d = Driver(workflow(steps), inputs={"k": "other"})
    assert list(d.effects) == ["c"] and status(d, "j") == "pruned"
    assert d.go() is not None and d.finished is not None and d.finished.status == "completed"


def test_siblings_of_the_fired_start_are_skipped_and_their_own_branch_is_pruned() -> None:
    steps = {"t": {"kind": "manual"}, "a": emit("s"), "b": emit("t"), "f": finish(["a", "b"], "{{steps.t.status}}")}
    d = Driver(workflow(steps), node="s")
    assert list(d.effects) == ["a"] and status(d, "b") == "pruned"
    assert d.go() is not None and d.finished is not None and d.finished.output == "skipped"


def test_a_start_node_yields_its_payload() -> None:
    d = Driver(workflow({"f": finish("s", "{{steps.s.output.a}}")}), payload={"a": 1})
    assert d.finished is not None and d.finished.output == 1


def test_a_failed_step_fails_the_run_by_name_and_abandons_the_rest() -> None:
    d = Driver(workflow({"a": emit("s"), "b": emit("s"), "f": finish(["a", "b"])}))
    decision = d.settle("a", Failed("tool", "no such file"))
    assert decision.finished is not None and decision.finished.status == "failed"
    assert decision.finished.err == {"code": "tool", "message": "no such file", "step": "a"}
    assert decision.cancelled == ["b"]


def test_a_missing_path_fails_the_step_and_names_it() -> None:
    d = Driver(workflow({"a": emit("s", "{{inputs.nope}}"), "f": finish("a")}))
    assert d.finished is not None and d.finished.err is not None
    assert d.finished.err["step"] == "a" and "inputs.nope" in d.finished.err["message"]


def test_continue_goes_on_with_the_error_at_hand() -> None:
    d = Driver(
        workflow({"a": emit("s", on_error="continue"), "f": finish("a", "{{steps.a.error.code}}/{{steps.a.status}}")})
    )
    d.settle("a", Failed("x", "y", retry=False))
    assert d.finished is not None and d.finished.output == "x/failed"


def test_a_handler_runs_only_after_the_failure() -> None:
    steps = {"a": emit("s", on_error="goto:h"), "b": emit("a"), "h": emit("a"), "f": finish(["b", "h"])}
    d = Driver(workflow(steps))
    d.settle("a", Done())
    assert list(d.effects) == ["b"] and status(d, "h") == "pruned"
    d = Driver(workflow(steps))
    d.settle("a", Failed("x", "y"))
    assert list(d.effects) == ["h"] and status(d, "b") == "pruned"
    assert ("step.goto", {"from": "a", "to": "h"}) in d.events


def test_going_back_enters_again_under_a_new_key() -> None:
    steps = {"a": emit("s"), "b": emit("a", on_error="goto:a"), "side": emit("s"), "f": finish(["b", "side"])}
    d = Driver(workflow(steps))
    d.do("a")
    d.settle("b", Failed("x", "y"))
    assert sorted(d.effects) == ["a#2", "side"]
    assert d.effects["a#2"].key == idempotency_key("r", "a#2")
    d.crash()
    assert sorted(d.effects) == ["a#2", "side"] and d.effects["a#2"].replay
    d.do("a#2")
    d.do("b#2")
    d.do("side")
    assert d.finished is not None and d.finished.status == "completed"


def test_a_pure_loop_of_gotos_ends() -> None:
    steps = {
        "a": {"kind": "noop", "depends_on": "s"},
        "b": {"kind": "fail", "depends_on": "a", "on_error": "goto:a"},
        "f": finish("b"),
    }
    d = Driver(workflow(steps))
    assert d.finished is not None and d.finished.err is not None and d.finished.err["code"] == "budget"


def test_retry_keeps_the_key_and_backs_off() -> None:
    d = Driver(workflow({"a": emit("s", retry={"max": 2, "backoff": "2s"}), "f": finish("a", "{{steps.a.attempt}}")}))
    key = d.effects["a"].key
    d.settle("a", Failed("x", "y"))
    again = d.effects["a"]
    assert (again.attempt, again.key, again.not_before) == (2, key, 1000.0 + 2 * 0.75)
    d.settle("a", TimedOut())
    assert d.effects["a"].attempt == 3
    d.settle("a", Done())
    assert d.finished is not None and d.finished.output == 3
    d = Driver(workflow({"a": emit("s", retry={"max": 2}), "f": finish("a")}))
    d.settle("a", Failed("x", "not worth it", retry=False))
    assert d.finished is not None and d.finished.status == "failed"


def test_a_timeout_is_a_status_of_its_own() -> None:
    d = Driver(workflow({"a": emit("s", timeout="1s", on_error="continue"), "f": finish("a", "{{steps.a.status}}")}))
    assert d.effects["a"].timeout == 1.0
    d.settle("a", TimedOut())
    assert d.finished is not None and d.finished.output == "timeout"


def test_no_finish_reached_is_stalled() -> None:
    d = Driver(workflow({"f": finish("s", when="inputs.x == 1")}))
    assert d.finished is not None and d.finished.status == "stalled"


def test_finish_speaks_for_the_run() -> None:
    d = Driver(workflow({"f": finish("s", {"a": 1}, status="{{inputs.st}}", reason="why")}), inputs={"st": "partial"})
    assert d.finished is not None
    assert (d.finished.status, d.finished.output, d.finished.reason) == ("partial", {"a": 1}, "why")
    d = Driver(workflow({"f": finish("s", status="{{inputs.st}}")}), inputs={"st": "great"})
    assert d.finished is not None and d.finished.status == "failed"


def test_outputs_schema_is_enforced() -> None:
    w = workflow({"f": finish("s", "{{inputs.x}}")}, outputs={"schema": {"type": "integer"}})
    assert Driver(w, inputs={"x": 1}).finished.status == "completed"  # type: ignore[union-attr]
    ended = Driver(w, inputs={"x": "1"}).finished
    assert (
        ended is not None
        and ended.status == "failed"
        and ended.err is not None
        and ended.err["code"] == "output_schema"
    )


def test_output_schema_of_a_step() -> None:
    d = Driver(workflow({"a": emit("s", output_schema={"type": "integer"}), "f": finish("a")}))
    d.settle("a", Done("no"))
    assert d.finished is not None and d.finished.err is not None and d.finished.err["code"] == "output_schema"
    assert d.records["a"]["status"] == "failed"


def test_sleep_is_a_durable_wait() -> None:
    d = Driver(
        workflow({"p": {"kind": "sleep", "depends_on": "s", "duration": "{{inputs.d}}"}, "f": finish("p")}),
        inputs={"d": "8s"},
    )
    assert d.waits["p"].until == 1008.0 and d.records["p"]["status"] == "suspended"
    d.crash()
    assert d.waits["p"].until == 1008.0
    d.fire("p")
    assert d.finished is not None


def test_a_wait_for_a_signal_filters_and_times_out() -> None:
    steps = {
        "q": {
            "kind": "wait",
            "depends_on": "s",
            "on": "signal",
            "name": "go",
            "filter": "n > 1",
            "timeout": "5s",
            "on_error": "continue",
        },
        "f": finish("q", "{{signals.go.n | steps.q.status}}"),
    }
    d = Driver(workflow(steps))
    assert d.waits["q"].on["name"] == "go" and d.waits["q"].until == 1005.0
    assert not holds(d.state, "q", {"n": 1}) and holds(d.state, "q", {"n": 2})
    d.settle("q", Done({"signal": "go", "payload": {"n": 2}, "from": "cli"}))
    assert d.finished is not None and d.finished.output == 2
    d = Driver(workflow(steps))
    d.fire("q")
    assert d.finished is not None and d.finished.output == "timeout"


def test_an_effect_may_suspend_and_come_back_after_a_restart() -> None:
    d = Driver(
        workflow({"h": {"kind": "human", "depends_on": "s", "question": "ok?"}, "f": finish("h")}),
        lambda effect: Suspend(on={"gate": "g1"}, until=2000.0),
    )
    d.do("h")
    d.crash()
    assert not d.effects and d.waits["h"].on == {"gate": "g1"} and d.waits["h"].until == 2000.0
    d.settle("h", Done("yes"))
    assert d.finished is not None and d.finished.output == "yes"


@pytest.mark.parametrize(("rule", "ends"), [("retry", None), ("skip", "completed"), ("fail", "failed")])
def test_on_replay_is_honoured(rule: str, ends: str | None) -> None:
    d = Driver(workflow({"a": emit("s", on_replay=rule), "f": finish("a")}))
    key = d.effects["a"].key
    d.crash()
    assert (d.finished.status if d.finished else None) == ends
    if ends is None:
        assert (d.effects["a"].attempt, d.effects["a"].key, d.effects["a"].replay) == (2, key, True)
        assert ("restore.step.replay", {"step": "a", "attempt": 2}) in d.events


def test_a_retry_that_was_held_back_is_not_a_replay() -> None:
    d = Driver(workflow({"a": emit("s", retry={"max": 1, "backoff": "60s"}), "f": finish("a")}))
    d.settle("a", Failed("x", "y"))
    d.crash()
    assert (d.effects["a"].attempt, d.effects["a"].replay) == (2, False)
    d.now = 5000.0
    d.crash()
    assert (d.effects["a"].attempt, d.effects["a"].replay) == (3, True)
    d.settle("a", Failed("x", "again"))
    assert d.finished is not None and d.finished.status == "failed"  # a crash uses up no retry, a failure does


def test_limits_end_the_run() -> None:
    run = Run(id="r", node="s", limits=Limits(steps=2, tokens=10))
    steps = {"a": emit("s"), "b": emit("a"), "c": emit("b"), "f": finish("c")}
    d = Driver(workflow(steps), run=run)
    d.do("a")
    d.do("b")
    assert d.finished is not None and d.finished.err is not None and d.finished.err["code"] == "budget"
    d = Driver(workflow(steps), run=run)
    d.settle("a", Done(tokens=11))
    assert d.finished is not None and d.finished.err is not None and "11 tokens" in d.finished.err["message"]


def test_cancel_abandons_what_is_in_flight() -> None:
    d = Driver(workflow({"a": emit("s"), "f": finish("a")}))
    decision = cancel(d.state, 1001.0, reason="asked to")
    assert decision.cancelled == ["a"] and decision.finished is not None and decision.finished.status == "cancelled"
    assert settle(d.state, "a", Done(), 1002.0).finished is None


def test_cache_key_is_scoped_and_kept() -> None:
    d = Driver(
        workflow({"a": emit("s", cache={"key": "k-{{inputs.x}}", "ttl": "1h"}), "f": finish("a")}), inputs={"x": 1}
    )
    cache = d.effects["a"].cache
    assert cache is not None and (cache.key, cache.ttl) == ("w/a/k-1", 3600.0)
    assert d.settle("a", Done("v")).caches == [(cache, "v")]
    d = Driver(workflow({"a": emit("s", cache={"key": "k"}), "f": finish("a")}))
    assert d.settle("a", Done("v", cached=True)).caches == []
    assert ("step.cache_hit", {"step": "a"}) in d.events


def test_checkpoint_asks_for_a_flush() -> None:
    d = Driver(workflow({"c": {"kind": "checkpoint", "depends_on": "s"}, "a": emit("c"), "f": finish("a")}))
    assert d.records["c"]["status"] == "done"


def test_what_the_memory_said_is_believed_after_a_restart() -> None:
    memory = {"a.b": 1}
    steps = {
        "m": {"kind": "assign", "depends_on": "s", "value": "{{memory.a.b}}"},
        "g": emit("m", "{{memory.a.b}}", when="memory.a.b == 1"),
        "f": finish("g", ["{{steps.m.output}}", "{{steps.g.output}}"]),
    }
    d = Driver(workflow(steps), echo, memory=memory)
    memory["a.b"] = 2
    d.crash()
    assert d.effects["g"].fields["payload"] == 1
    d.do("g")
    assert d.finished is not None and d.finished.output == [1, 1]


def test_what_the_memory_did_not_say_stays_unsaid() -> None:
    memory: dict[str, Any] = {}
    steps = {"a": emit("s", "{{memory.x}}", on_error="continue"), "b": emit("a"), "f": finish("b")}
    d = Driver(workflow(steps), memory=memory)
    assert list(d.effects) == ["b"]
    memory["x"] = 1
    d.crash()
    assert list(d.effects) == ["b"]


def test_variables_and_reducers() -> None:
    def assign(after: str, value: Any, **more: Any) -> dict[str, Any]:
        return {"kind": "assign", "depends_on": after, "value": value, "writes": "v", **more}

    steps = {
        "a": assign("s", 1),
        "b": assign("a", 2),
        "c": assign("b", [2, 3], mode="union"),
        "f": finish("c", "{{vars.v}}"),
    }
    d = Driver(workflow(steps, state={"v": {"reducer": "append", "schema": {"type": "array"}}}))
    assert d.finished is not None and d.finished.output == [1, 2, 3]
    d = Driver(
        workflow(
            {**steps, "c": assign("b", "x", mode="overwrite")},
            state={"v": {"reducer": "append", "schema": {"type": "array"}}},
        )
    )
    assert d.finished is not None and d.finished.status == "failed"
    with pytest.raises(ConfigError, match="declares no variable"):
        Driver(workflow({"a": {**assign("s", 1), "writes": "w"}, "f": finish("a")}, state={"v": {}}))


def test_env_names_the_step() -> None:
    env = {name: f"{{{{env.{name}}}}}" for name in ("instance", "run", "step", "attempt", "idempotency_key", "ts")}
    d = Driver(workflow({"a": emit("s", env), "f": finish("a")}), echo)
    said = d.effects["a"].fields["payload"]
    assert said == {
        "instance": "i",
        "run": "r",
        "step": "a",
        "attempt": 1,
        "idempotency_key": idempotency_key("r", "a"),
        "ts": "1970-01-01T00:16:40Z",
    }
