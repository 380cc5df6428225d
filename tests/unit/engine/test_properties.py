"""What holds of every run: it ends, in the order of its dependencies, the same way whatever happens between."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentd.engine.decision import Done, Failed
from agentd.engine.definition import compile_plan
from agentd.testing.runs import Driver, kernel_kinds

KINDS = kernel_kinds()
QUIET = settings(max_examples=settings.default.max_examples // 2, suppress_health_check=list(HealthCheck))


@st.composite
def steps(draw: st.DrawFn, nesting: int = 0, outer: tuple[str, ...] = ()) -> dict[str, Any]:
    """Some steps, each after some of those before it; every kind of scheduling occurs."""
    made: dict[str, Any] = {}
    size = draw(st.integers(1, 5 if nesting else 7))
    for i in range(size):
        before = [f"n{nesting}{j}" for j in range(i)]
        depends = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        reads = [f"{{{{steps.{id}.output | null}}}}" for id in (*depends, *outer[:1])]
        common: dict[str, Any] = {"depends_on": depends or ([] if nesting else ["s"])}
        if draw(st.integers(0, 5)) == 0:
            common["when"] = draw(st.sampled_from(["inputs.flag == true", "inputs.flag != true"]))
        if draw(st.integers(0, 3)) == 0:
            common["on_error"] = draw(
                st.sampled_from(["continue", *(f"goto:{id}" for id in (*before, f"n{nesting}{i}"))])
            )
        choice = draw(st.integers(0, 9 if nesting < 2 else 5))
        if choice <= 3:
            own: dict[str, Any] = {"kind": "emit", "payload": [f"n{nesting}{i}", *reads]}
        elif choice == 4:
            own = {"kind": "assign", "value": reads, "writes": "trail", "mode": "append"}
        elif choice == 5:
            own = {"kind": "sleep", "duration": draw(st.integers(1, 9))}
        else:
            own = draw(bodies(nesting, tuple(depends), list(common.values())))
        made[f"n{nesting}{i}"] = {**common, **own}
    return made


@st.composite
def bodies(draw: st.DrawFn, nesting: int, outer: tuple[str, ...], _: Any) -> dict[str, Any]:
    inner = steps(nesting + 1, outer)
    kind = draw(st.sampled_from(["foreach", "parallel", "iterate", "subgraph"]))
    if kind == "foreach":
        return {
            "kind": kind,
            "over": list(range(draw(st.integers(0, 3)))),
            "body": draw(inner),
            "batch": {"parallel": 2},
        }
    if kind == "parallel":
        return {"kind": kind, "branches": {"l": draw(inner), "r": draw(inner)}}
    if kind == "iterate":
        return {"kind": kind, "max_iterations": draw(st.integers(0, 2)), "body": draw(inner), "collect": True}
    return {"kind": kind, "body": draw(inner)}


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    made = draw(steps())
    used = {d for step in made.values() for d in step["depends_on"]}
    sinks = [id for id in made if id not in used]
    output = {id: f"{{{{steps.{id}.output | null}}}}" for id in made}
    return {
        "name": "w",
        "steps": {"s": {"kind": "manual"}, **made, "f": {"kind": "finish", "depends_on": sinks, "output": output}},
    }


def answer(effect: Any) -> Any:
    """A function of the entry alone; some always fail, but not at every visit."""
    if hashlib.sha256(effect.entry.encode()).digest()[0] < 60:
        return Failed("odd", "its hash is odd in some way", retry=False)
    return Done({"said": effect.fields["payload"], "by": effect.entry})


def quiet(effect: Any) -> Any:
    """Nothing fails: which of several failures is told first is a matter of the order they come in."""
    return Done({"said": effect.fields["payload"], "by": effect.entry})


def ended(driver: Driver) -> str:
    assert driver.finished is not None
    status, output, err = driver.finished.status, driver.finished.output, driver.finished.err
    return json.dumps([status, output, (err or {}).get("step")], sort_keys=True)


@QUIET
@given(workflows(), st.booleans(), st.randoms(use_true_random=False))
def test_every_run_ends_and_dependencies_hold(workflow: dict[str, Any], flag: bool, random: Any) -> None:
    plan = compile_plan(workflow, KINDS)
    driver = Driver(plan, answer, inputs={"flag": flag})
    driver.go(random.choice)
    assert driver.finished is not None and driver.finished.status in ("completed", "failed")
    begun = {fields["step"]: i for i, (event, fields) in enumerate(driver.events) if event == "step.start"}
    over = {fields["step"]: i for i, (event, fields) in enumerate(driver.events) if event == "step.done"}
    for id, step in workflow["steps"].items():
        for before in step.get("depends_on", ()):
            if id in begun and before in begun:
                assert over[before] < begun[id]


@QUIET
@given(workflows(), st.booleans(), st.randoms(use_true_random=False))
def test_any_order_of_completion_gives_the_same_result(workflow: dict[str, Any], flag: bool, random: Any) -> None:
    plan = compile_plan(workflow, KINDS)
    first, second = Driver(plan, quiet, inputs={"flag": flag}), Driver(plan, quiet, inputs={"flag": flag})
    first.go()
    second.go(random.choice)
    assert ended(first) == ended(second)
    assert sorted(first.performed) == sorted(second.performed)


@QUIET
@given(workflows(), st.booleans(), st.randoms(use_true_random=False))
def test_crashes_change_nothing(workflow: dict[str, Any], flag: bool, random: Any) -> None:
    """The same run with and without crashes between any two events: one key per entry, no done step again."""
    plan = compile_plan(workflow, KINDS)
    order = random.getrandbits(64)

    def run(crashes: bool) -> Driver:
        driver = Driver(plan, answer, inputs={"flag": flag})
        for _ in range(5000):
            if driver.finished is not None:
                break
            if crashes:
                before = snapshot(driver)
                driver.records = json.loads(json.dumps(driver.records))
                driver.crash()
                assert snapshot(driver) == before
            pending = sorted(driver.pending())
            driver.happen(pending[order % len(pending)])
        return driver

    calm, stormy = run(False), run(True)
    assert ended(calm) == ended(stormy)
    assert calm.performed == stormy.performed
    stormy.crash()
    assert ended(calm) == ended(stormy)  # all was done, but the run's own record was late


def snapshot(driver: Driver) -> Any:
    waits = {entry: (wait.until, dict(wait.on)) for entry, wait in driver.waits.items()}
    effects = {entry: (effect.fields, effect.key) for entry, effect in driver.effects.items()}
    steps = {id: (facts["status"], facts["output"]) for id, facts in driver.state.view().items()}
    return json.dumps([waits, effects, steps, driver.state.vars, driver.state.n], sort_keys=True)


@QUIET
@given(workflows(), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_a_torn_end_is_taken_up_again(workflow: dict[str, Any], flag: bool, faults: bool, random: Any) -> None:
    """The last commit did not reach the disk: what it said happens again, under the same keys, to the same result."""
    plan = compile_plan(workflow, KINDS)
    driver = Driver(plan, answer if faults else quiet, inputs={"flag": flag})
    for _ in range(5000):
        if driver.finished is not None:
            break
        durable = dict(driver.records)
        driver.happen(random.choice(driver.pending()))
        if random.random() < 0.3:
            driver.records = durable
            driver.crash()
    keys: dict[str, str] = {}
    for entry, key in driver.performed:
        assert keys.setdefault(entry, key) == key
    assert driver.finished is not None and driver.finished.status in ("completed", "failed")
    if not faults:
        calm = Driver(plan, quiet, inputs={"flag": flag})
        calm.go()
        assert ended(driver) == ended(calm)
