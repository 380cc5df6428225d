"""Steps that change durable state: memory, artifacts, streams, other runs, people."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import UsageError
from agentd.runtime.instance import Instance
from agentd.testing.instance import Lived, live
from agentd.testing.mcp_server import McpServer

Document = dict[str, Any]


def graph(steps: Document, output: Any, *, start: str = "once") -> Document:
    """`steps` one after the other, between a start and a finish."""
    made: Document = {"start": {"kind": start}}
    before = "start"
    for name, step in steps.items():
        made[name] = {"depends_on": [before], **step}
        before = name
    made["finish"] = {"kind": "finish", "depends_on": [before], "output": output}
    return made


def job(steps: Document, output: Any, *others: Document, **more: Any) -> Document:
    return {"workflows": [{"name": "w", "steps": graph(steps, output)}, *others], **more}


def child(steps: Document, output: Any = None, name: str = "child", **more: Any) -> Document:
    return {"name": name, "steps": graph(steps, output, start="manual"), **more}


FILE = {"store": {"kind": "file"}}


class TestMemory:
    def test_a_value_is_set_read_listed_and_deleted(self, tmp_path: Path) -> None:
        steps = {
            "set": {"kind": "memory.set", "key": "a.b", "value": {"n": 1}},
            "get": {"kind": "memory.get", "key": "a.b"},
            "list": {"kind": "memory.list", "prefix": "a."},
            "del": {"kind": "memory.delete", "key": "a.b"},
            "again": {"kind": "memory.get", "key": "a.b"},
        }
        lived = live(job(steps, ["{{steps.get.output}}", "{{steps.list.output}}", "{{steps.again.output}}"]), tmp_path)
        assert lived.output == [{"found": True, "value": {"n": 1}}, ["a.b"], {"found": False, "value": None}]

    def test_it_outlives_the_process_and_templates_read_it(self, tmp_path: Path) -> None:
        live(job({"s": {"kind": "memory.set", "key": "seen", "value": 7}}, None, **FILE), tmp_path)
        again = {"name": "again", "steps": graph({}, "{{memory.seen}}")}
        assert live({"workflows": [again], **FILE}, tmp_path).output == 7

    def test_a_value_is_gone_after_its_time(self, tmp_path: Path) -> None:
        steps = {
            "set": {"kind": "memory.set", "key": "k", "value": 1, "ttl": "10ms"},
            "nap": {"kind": "sleep", "duration": "30ms"},
            "get": {"kind": "memory.get", "key": "k"},
        }
        assert live(job(steps, "{{steps.get.output.found}} {{memory.k | gone}}"), tmp_path).printed == "false gone\n"

    def test_a_sensitive_value_is_for_steps_that_ask_only(self, tmp_path: Path) -> None:
        steps = {
            "set": {"kind": "memory.set", "key": "k", "value": "s", "sensitive": True},
            "get": {"kind": "memory.get", "key": "k"},
        }
        assert live(job(steps, "{{steps.get.output.value}} {{memory.k | hidden}}"), tmp_path).printed == "s hidden\n"


class TestArtifacts:
    def test_content_is_kept_read_and_removed(self, tmp_path: Path) -> None:
        steps = {
            "make": {"kind": "artifact.create", "content": "text", "name": "n", "media_type": "text/plain"},
            "get": {"kind": "artifact.get", "id": "{{steps.make.output.id}}"},
            "del": {"kind": "artifact.delete", "id": "{{steps.make.output.id}}"},
            "again": {"kind": "artifact.get", "id": "{{steps.make.output.id}}"},
        }
        lived = live(job(steps, ["{{steps.get.output}}", "{{steps.again.output.found}}"], **FILE), tmp_path)
        kept = {"found": True, "content": "text", "size": 6, "name": "n", "media_type": "text/plain"}
        assert lived.output == [kept, False]


class TestEmit:
    def test_an_event_is_appended_once_for_each_key(self, tmp_path: Path) -> None:
        event = {"kind": "emit", "stream": "orders", "subject": "made", "payload": {"n": 1}, "key": "same"}
        found: list[Any] = []

        async def look(instance: Instance, lived: Lived) -> None:
            await until(lambda: instance.runs.finished == 1)
            found.extend(await instance.streams.read("orders"))

        document = job({"a": event, "b": event, "c": {**event, "key": None}}, None, streams={"orders": {}})
        document["lifecycle"] = {"run_until": "drained"}
        assert live(document, tmp_path, during=look).code == 0
        assert [(e.n, e.subject, e.data) for e in found] == [(1, "made", {"n": 1}), (2, "made", {"n": 1})]

    def test_an_undeclared_stream_is_named(self, tmp_path: Path) -> None:
        lived = live(job({"s": {"kind": "emit", "stream": "no", "payload": 1}}, None), tmp_path)
        assert "no" in lived.ended("s")["err"]["message"] and lived.code == 1


class TestWorkflow:
    def test_a_sync_step_has_the_output_of_its_run(self, tmp_path: Path) -> None:
        step = {"kind": "workflow", "name": "child", "inputs": {"x": 2}}
        lived = live(job({"s": step}, "{{steps.s.output}}", child({}, {"got": "{{inputs.x}}"})), tmp_path)
        assert lived.output["status"] == "completed" and lived.output["output"] == {"got": 2}

    def test_it_fails_with_its_run(self, tmp_path: Path) -> None:
        bad = child({"f": {"kind": "fail", "message": "no luck", "code": "luck"}})
        lived = live(job({"s": {"kind": "workflow", "name": "child"}}, None, bad), tmp_path)
        assert lived.code == 1 and lived.ended("s")["err"] == {"type": "luck", "message": "no luck"}

    def test_async_runs_are_joined_by_position(self, tmp_path: Path) -> None:
        steps = {
            "a": {"kind": "workflow", "name": "child", "mode": "async", "inputs": {"x": 1}},
            "b": {"kind": "workflow", "name": "child", "mode": "async", "inputs": {"x": 2}},
            "s": {"kind": "join", "handles": ["{{steps.a.output}}", "{{steps.b.output.run}}"]},
        }
        lived = live(job(steps, "{{steps.s.output}}", child({}, "{{inputs.x}}")), tmp_path)
        assert [end["output"] for end in lived.output] == [1, 2]

    def test_a_join_takes_what_there_is_at_its_time(self, tmp_path: Path) -> None:
        slow = child({"nap": {"kind": "sleep", "duration": "1h"}}, name="slow")
        steps = {
            "a": {"kind": "workflow", "name": "child", "mode": "async"},
            "b": {"kind": "workflow", "name": "slow", "mode": "async"},
            "s": {"kind": "join", "handles": ["{{steps.a.output}}", "{{steps.b.output}}"], "timeout": "200ms",
                  "partials": True},
            "end": {"kind": "workflow.cancel", "run": "{{steps.b.output.run}}"},
            "after": {"kind": "workflow.wait", "run": "{{steps.b.output.run}}"},
        }  # fmt: skip
        output = ["{{steps.s.output}}", "{{steps.end.output.cancelled}}", "{{steps.after.output.status}}"]
        first, cancelled, status = live(job(steps, output, child({}, 1), slow), tmp_path).output
        assert first[0]["output"] == 1 and first[1] is None and cancelled is True and status == "cancelled"

    def test_a_failed_run_takes_those_it_started_with_it(self, tmp_path: Path) -> None:
        slow = child({"nap": {"kind": "sleep", "duration": "1h"}}, name="slow")
        steps = {"a": {"kind": "workflow", "name": "slow", "mode": "async"}, "f": {"kind": "fail", "message": "x"}}
        lived = live(job(steps, None, slow), tmp_path)
        assert {e["workflow"]: e["status"] for e in lived.named("run.done")} == {"w": "failed", "slow": "cancelled"}

    @pytest.mark.parametrize(("mode", "left"), [("sync", "cancelled"), ("async", "completed")])
    def test_after_a_good_end_only_the_loser_of_a_race_goes(self, tmp_path: Path, mode: str, left: str) -> None:
        slow = child({"nap": {"kind": "sleep", "duration": "1s" if mode == "async" else "1h"}}, name="slow")
        branches: Document = {
            "a": {"run": {"kind": "workflow", "name": "slow"}},
            "b": {"nap": {"kind": "sleep", "duration": "50ms"}},
        }
        steps: Document = {"s": {"kind": "race", "branches": branches}}
        if mode == "async":
            steps = {"s": {"kind": "workflow", "name": "slow", "mode": "async"}}
        lived = live(job(steps, None, slow), tmp_path)
        assert {e["workflow"]: e["status"] for e in lived.named("run.done")} == {"w": "completed", "slow": left}

    def test_a_workflow_that_starts_itself_comes_to_an_end(self, tmp_path: Path) -> None:
        me = child({"s": {"kind": "workflow", "name": "child"}}, concurrency={"max_runs": 99})
        lived = live(job({"s": {"kind": "workflow", "name": "child"}}, None, me), tmp_path)
        assert lived.code == 1 and "16 deep" in lived.ended("s")["err"]["message"]

    def test_a_signal_wakes_the_run_it_is_for(self, tmp_path: Path) -> None:
        waits = child({"w": {"kind": "wait", "on": "signal", "name": "go"}}, "{{steps.w.output.payload}}")
        steps = {
            "a": {"kind": "workflow", "name": "child", "mode": "async"},
            "send": {"kind": "workflow.signal", "name": "go", "run": "{{steps.a.output.run}}", "payload": 5},
            "s": {"kind": "workflow.wait", "run": "{{steps.a.output.run}}"},
        }
        assert live(job(steps, "{{steps.s.output.output}}", waits), tmp_path).output == 5


ASK: Document = {"kind": "human", "question": "how many?", "schema": {"type": "integer"}}


class TestHuman:
    def test_a_question_is_answered_in_a_later_life(self, tmp_path: Path) -> None:
        document = job({"s": ASK}, "{{steps.s.output}}", lifecycle={"run_until": "drained"}, **FILE)

        async def leave(instance: Instance, lived: Lived) -> None:
            await until(lambda: bool(instance.waits.gates.asked()))

        first = live(document, tmp_path, during=leave)
        (asked,) = first.named("human.ask")
        ends: list[Any] = []

        async def answer(instance: Instance, lived: Lived) -> None:
            (gate,) = (await instance.operations.operate("gates", {}))["gates"]
            assert gate["task"] == asked["task"] and gate["question"] == "how many?"
            with pytest.raises(UsageError, match="schema"):
                await instance.operations.operate("answer", {"task": gate["task"], "value": "many"})
            await instance.operations.operate("answer", {"task": gate["task"], "value": 3})
            ends.append(await instance.operations.end(gate["run"]))

        second = live(document, tmp_path, during=answer)
        assert ends[0]["output"] == 3 and second.named("human.answered") and not second.named("human.timeout")

    def test_nobody_answers_in_time(self, tmp_path: Path) -> None:
        lived = live(job({"s": {**ASK, "timeout": "30ms"}}, None), tmp_path)
        assert lived.code != 0 and lived.named("human.timeout") and lived.ended("s")["status"] == "timeout"


class TestWaits:
    def test_a_condition_comes_true(self, tmp_path: Path) -> None:
        steps: Document = {
            "start": {"kind": "once"},
            "w": {"kind": "wait", "on": "condition", "condition": "steps.nap.status == 'done'", "interval": "10ms",
                  "depends_on": ["start"]},
            "nap": {"kind": "sleep", "duration": "50ms", "depends_on": ["start"]},
            "set": {"kind": "memory.set", "key": "go", "value": True, "depends_on": ["nap"]},
            "finish": {"kind": "finish", "depends_on": ["w", "set"], "output": "{{steps.w.output.condition}}"},
        }  # fmt: skip
        assert live({"workflows": [{"name": "w", "steps": steps}]}, tmp_path).output is True

    @pytest.mark.parametrize("more", [{}, {"filter": "content.n >= 3"}])
    def test_a_resource_changes_or_is_as_wanted(self, tmp_path: Path, more: Document) -> None:
        reads = iter(range(1, 1000))
        with McpServer(resources={"box://n": lambda: json.dumps({"n": next(reads)})}) as server:
            step = {"kind": "wait", "on": "resource", "server": "box", "uri": "box://n", "interval": "5ms", **more}
            mcp = {"servers": [{"name": "box", "endpoint": server.url}]}
            lived = live(job({"s": step}, "{{steps.s.output.content.n}}", mcp=mcp), tmp_path)
        assert lived.output == (3 if more else 2)


async def until(what: Any) -> None:
    """Wait for something of an instance to come true."""
    async with asyncio.timeout(10):
        while not what():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
