"""A turn over a real socket pair, with a scripted model and fake servers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from agentd.errors import IntelligenceUnavailable
from agentd.ports.model import Usage
from agentd.turn.offers import Observation

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_a_call_and_an_answer(turn: Any, reply: Any) -> None:
    done = turn([reply("", ("fs_put", {"path": "a"})), reply("DONE")])
    assert done.result == {
        "t": "result",
        "status": "completed",
        "output": "DONE",
        "rounds": 2,
        "tool_calls": 1,
        "tokens_in": 20,
        "tokens_out": 10,
        "err": None,
        "health": [],
    }
    assert done.servers.calls[0][:2] == ("put", {"path": "a"})
    assert [m["role"] for m in done.supervisor.messages()] == ["user", "assistant", "tool", "assistant"]
    assert done.answers()["c1_0"]["text"] == '<tool_result source="fs.put">\nok\n</tool_result>'
    assert done.model.closed and done.servers.closed
    assert done.supervisor.events("loop.start") == [{"tools": 6, "servers": ["fs"], "max_steps": 500}]
    (call,), (ended,) = done.supervisor.events("tool.call"), done.supervisor.events("tool.result")
    assert call == {"server": "fs", "tool": "put", "call_id": "c1_0"}
    assert (ended["is_error"], ended["bytes"], "result" in ended) == (False, 2, False)


def test_the_bare_and_the_full_name_reach_the_tool_too(turn: Any, reply: Any) -> None:
    done = turn([reply("", ("put", {"path": "a"}), ("fs.get", {"path": "a"})), reply("DONE")])
    assert [c[0] for c in done.servers.calls] == ["put", "get"]


def test_an_unknown_tool_is_told_and_the_run_goes_on(turn: Any, reply: Any) -> None:
    done = turn([reply("", ("rm", {"path": "a"})), reply("DONE")])
    answer = done.answers()["c1_0"]
    assert answer["is_error"] and "no tool rm" in answer["text"] and "fs_put" in answer["text"]
    assert done.result["output"] == "DONE" and not done.servers.calls


def test_unreadable_arguments_are_told_and_not_called(turn: Any, reply: Any) -> None:
    done = turn([reply("", ("fs_put", None)), reply("DONE")])
    assert done.answers()["c1_0"]["is_error"] and "cut" in done.answers()["c1_0"]["text"]
    assert not done.servers.calls and not done.supervisor.said("permit")


def test_a_cut_answer_with_half_a_command_is_not_executed(turn: Any, reply: Any) -> None:
    done = turn([reply("I will", ("fs_put", {}), reason="max_tokens"), reply("DONE")])
    assert done.answers()["c1_0"]["is_error"] and not done.servers.calls
    whole = turn([reply("", ("fs_put", {"path": "a"}), reason="length"), reply("DONE")])
    assert len(whole.servers.calls) == 1


def test_a_refused_permit_is_told(turn: Any, reply: Any) -> None:
    script = [reply("", ("fs_put", {"path": "a"})), reply("DONE")]
    done = turn(script, on={"permit": lambda _: {"ok": False, "reason": "policy no-writes"}})
    assert done.answers()["c1_0"] == {
        "role": "tool",
        "text": "not allowed: policy no-writes",
        "call_id": "c1_0",
        "is_error": True,
    }
    assert not done.servers.calls and done.result["status"] == "completed"


def test_a_fault_of_a_server_costs_that_call(turn: Any, reply: Any) -> None:
    async def serve(tool: str, args: Any) -> Observation:
        if args["path"] == "b":
            raise RuntimeError("broken pipe")
        return Observation(text="quota exceeded for tenant", is_error=True)

    done = turn([reply("", ("fs_put", {"path": "a"}), ("fs_put", {"path": "b"})), reply("DONE")], serve=serve)
    assert "quota exceeded for tenant" in done.answers()["c1_0"]["text"] and done.answers()["c1_0"]["is_error"]
    assert "broken pipe" in done.answers()["c1_1"]["text"]
    assert done.result["output"] == "DONE"


def test_keys_are_stable_and_count_repetitions(turn: Any, reply: Any) -> None:
    a, b = ("fs_put", {"path": "a"}), ("fs_put", {"path": "b"})
    first = turn([reply("", a, b, a), reply("DONE")])
    again = turn([reply("", b, a, a), reply("DONE")], attempt=2)
    keys = [k for *_, k in first.servers.calls]
    assert len(set(keys)) == 3 and sorted(keys) == sorted(k for *_, k in again.servers.calls)
    other = turn([reply("", a), reply("DONE")], step="s2")
    assert other.servers.calls[0][2] not in keys
    assert [p["key"] for p in first.supervisor.said("permit")] == keys


def test_reading_calls_run_side_by_side_and_answer_in_order(turn: Any, reply: Any) -> None:
    running: list[str] = []
    both = asyncio.Event()

    async def serve(tool: str, args: Any) -> Observation:
        running.append(args["path"])
        if len(running) == 2:
            both.set()
        await both.wait()
        return Observation(text=args["path"])

    done = turn([reply("", ("fs_get", {"path": "a"}), ("fs_stat", {"path": "b"})), reply("DONE")], serve=serve)
    told = [m.call_id for m in done.model.requests[1].messages if m.role == "tool"]
    assert told == ["c1_0", "c1_1"] and "\nb\n" in done.answers()["c1_1"]["text"]


def test_a_writing_call_keeps_all_in_order(turn: Any, reply: Any) -> None:
    running: list[str] = []

    async def serve(tool: str, args: Any) -> Observation:
        running.append(tool)
        await asyncio.sleep(0)
        assert running.pop() == tool and not running
        return Observation(text="ok")

    done = turn([reply("", ("fs_get", {"path": "a"}), ("fs_put", {"path": "b"})), reply("DONE")], serve=serve)
    assert [c[0] for c in done.servers.calls] == ["get", "put"] and done.result["output"] == "DONE"


@pytest.mark.parametrize("count", [1, 2])
def test_the_same_call_four_times_ends_the_turn(turn: Any, reply: Any, count: int) -> None:
    answers = [reply("", *[("fs_put", {"path": "a"})] * count, n=n) for n in range(9)]
    done = turn(answers)
    assert done.result["status"] == "loop_detected" and done.result["err"]["code"] == "loop_detected"
    assert len(done.servers.calls) == 3
    assert done.answers()


def test_rounds_and_tokens_are_bounded(turn: Any, reply: Any) -> None:
    calls = [reply("", ("fs_put", {"path": str(n)}), n=n) for n in range(9)]
    rounds = turn(calls, limits={"rounds": 3})
    assert (rounds.result["status"], rounds.result["rounds"]) == ("exhausted_steps", 3)
    assert rounds.result["err"]["code"] == "budget" and rounds.answers()
    tokens = turn(calls, limits={"tokens": 30})
    assert (tokens.result["status"], tokens.result["rounds"]) == ("exhausted_tokens", 2)


def test_unreported_usage_is_charged_as_an_estimate(turn: Any, reply: Any) -> None:
    silent = [reply("", ("fs_put", {"path": str(n)}), n=n, usage=Usage()) for n in range(9)]
    done = turn(silent, limits={"tokens": 100})
    assert done.result["status"] == "exhausted_tokens" and done.result["rounds"] == 1
    (usage,) = done.supervisor.said("usage")
    assert usage["tokens_in"] > 50 and usage["tokens_out"] > 1 and usage["reported"] is False


def test_the_deadline_ends_a_model_call_and_a_tool_call(turn: Any, reply: Any, never: Any) -> None:
    async def serve(tool: str, args: Any) -> Any:
        await never()

    model = turn([never], limits={"deadline": time.time() + 0.2})
    assert model.result["status"] == "deadline" and model.supervisor.said("usage")[0]["tokens_in"] > 0
    tool = turn([reply("", ("fs_put", {"path": "a"}))], serve=serve, limits={"deadline": time.time() + 0.3})
    assert tool.result["status"] == "deadline" and "deadline" in tool.answers()["c1_0"]["text"]
    past = turn([reply("DONE")], limits={"deadline": time.time() - 1})
    assert past.result["status"] == "deadline" and not past.model.requests


def test_intelligence_unavailable_is_the_error(turn: Any) -> None:
    done = turn([IntelligenceUnavailable("all endpoints failed")])
    assert done.result["status"] == "failed"
    assert done.result["err"] == {"code": "intelligence", "message": "all endpoints failed"}


def test_a_mistake_of_ours_is_still_a_result(turn: Any) -> None:
    done = turn([ZeroDivisionError("oops")])
    assert done.result["err"] == {"code": "internal", "message": "ZeroDivisionError: oops"}


class TestFinish:
    def test_ends_the_turn_after_its_round(self, turn: Any, reply: Any) -> None:
        finish = ("finish", {"status": "completed", "result": {"a": 1}})
        done = turn([reply("", finish, ("fs_put", {"path": "a"}))])
        assert done.result["output"] == {"a": 1} and done.result["rounds"] == 1
        assert len(done.servers.calls) == 1 and done.answers()

    @pytest.mark.parametrize("status", ["partial", "refused", "failed"])
    def test_says_how(self, turn: Any, reply: Any, status: str) -> None:
        done = turn([reply("", ("finish", {"status": status, "result": "half"}))])
        assert (done.result["status"], done.result["output"]) == (status, "half")
        assert (done.result["err"] is None) == (status == "partial")

    def test_is_held_to_the_schema(self, turn: Any, reply: Any) -> None:
        wrong, right = ("finish", {"result": {"n": "x"}}), ("finish", {"result": '{"n": 2}'})
        done = turn([reply("", wrong, n=1), reply("", right, n=2)], output_schema=SCHEMA)
        assert done.result["output"] == {"n": 2} and done.answers()["c1_0"]["is_error"]

    def test_gives_up_when_it_never_fits(self, turn: Any, reply: Any) -> None:
        wrong = [reply("", ("finish", {"result": {"n": str(n)}}), n=n) for n in range(9)]
        done = turn(wrong, output_schema=SCHEMA)
        assert (done.result["status"], done.result["rounds"]) == ("failed", 3)


class TestStructuredOutput:
    def test_is_parsed(self, turn: Any, reply: Any) -> None:
        done = turn([reply('```json\n{"n": 3}\n```')], output_schema=SCHEMA)
        assert done.result["output"] == {"n": 3} and done.model.requests[0].schema == SCHEMA

    def test_is_asked_for_again_at_most_twice(self, turn: Any, reply: Any) -> None:
        done = turn([reply("three"), reply('{"n": "3"}'), reply('{"n": 3}')], output_schema=SCHEMA)
        assert (done.result["output"], done.result["rounds"]) == ({"n": 3}, 3)
        never = turn([reply("three")], output_schema=SCHEMA)
        assert (never.result["status"], never.result["rounds"]) == ("failed", 3)
        assert never.result["err"]["code"] == "output_schema"

    def test_does_without_the_providers_mode_where_it_is_refused(self, turn: Any, reply: Any) -> None:
        refused = IntelligenceUnavailable("HTTP 400", status=400, tool="")
        done = turn([refused, reply('{"n": 3}')], output_schema=SCHEMA)
        assert done.result["output"] == {"n": 3}
        assert [r.schema for r in done.model.requests] == [SCHEMA, None]
        about_a_tool = turn([IntelligenceUnavailable("HTTP 400", status=400, tool="fs_put")], output_schema=SCHEMA)
        assert about_a_tool.result["err"]["fields"]["tool"] == "fs_put" and len(about_a_tool.model.requests) == 1

    def test_a_schema_that_cannot_be_used_is_said(self, turn: Any, reply: Any) -> None:
        done = turn([reply("1")], output_schema={"$ref": "http://127.0.0.1:9/s.json"})
        assert done.result["err"]["code"] == "config" and "output_schema" in done.result["err"]["message"]


class TestOddAnswers:
    def test_announced_calls_without_any_are_asked_for_once(self, turn: Any, reply: Any) -> None:
        done = turn([reply("", reason="tool_calls"), reply("DONE")])
        assert (done.result["output"], len(done.model.requests)) == ("DONE", 2)
        assert all(m.text or m.calls for m in done.model.requests[1].messages)
        never = turn([reply("", reason="tool_calls")])
        assert (never.result["status"], len(never.model.requests)) == ("failed", 2)

    def test_announced_calls_with_text_are_an_answer(self, turn: Any, reply: Any) -> None:
        done = turn([reply("thinking aloud", reason="tool_calls")])
        assert (done.result["status"], done.result["output"]) == ("completed", "thinking aloud")

    def test_an_empty_answer_is_one(self, turn: Any, reply: Any) -> None:
        done = turn([reply("", reason="end_turn")])
        assert (done.result["status"], done.result["output"], done.result["rounds"]) == ("completed", "", 1)
        assert [m["role"] for m in done.supervisor.messages()] == ["user"]

    @pytest.mark.parametrize("finish", ["refused", "filtered"])
    def test_a_refusal_is_refused(self, turn: Any, reply: Any, finish: str) -> None:
        done = turn([reply("", finish=finish)])
        assert (done.result["status"], done.result["err"]["code"]) == ("refused", finish)

    def test_a_pause_is_sent_back(self, turn: Any, reply: Any) -> None:
        done = turn([reply("part 1", finish="paused", reason="pause_turn"), reply("DONE")])
        assert done.result["output"] == "DONE" and done.model.requests[1].messages[-1].text == "part 1"

    def test_a_cut_without_a_word_fails(self, turn: Any, reply: Any) -> None:
        assert turn([reply("", reason="length")]).result["err"]["code"] == "cut"
        assert turn([reply("half", reason="length")]).result["output"] == "half"


class TestCancel:
    def test_gives_up_the_model_call(self, turn: Any, never: Any) -> None:
        hold: list[Any] = []

        async def asked() -> Any:
            hold[0].send({"t": "cancel", "reason": "drain"})
            return await never()

        done = turn([asked], hold=hold)
        assert (done.result["status"], done.result["err"]["message"]) == ("cancelled", "drain")

    def test_hears_a_running_tool_out_and_calls_no_other(self, turn: Any, reply: Any) -> None:
        hold: list[Any] = []

        async def serve(tool: str, args: Any) -> Observation:
            hold[0].send({"t": "cancel", "reason": "drain"})
            await asyncio.sleep(0.1)
            return Observation(text="written")

        done = turn([reply("", ("fs_put", {"path": "a"}), ("fs_put", {"path": "b"}))], serve=serve, hold=hold)
        assert done.result["status"] == "cancelled" and len(done.servers.calls) == 1
        # A later attempt is told what was answered, and makes the other call.
        (told,) = (m for m in done.supervisor.messages() if m["role"] == "tool")
        assert told["call_id"] == "c1_0" and "written" in told["text"]

    def test_now_gives_up_a_running_tool(self, turn: Any, reply: Any, never: Any) -> None:
        hold: list[Any] = []

        async def serve(tool: str, args: Any) -> Any:
            hold[0].send({"t": "cancel", "reason": "drain", "now": True})
            await never()

        done = turn([reply("", ("fs_put", {"path": "a"}))], serve=serve, hold=hold)
        assert done.result["status"] == "cancelled"
        assert not [m for m in done.supervisor.messages() if m["role"] == "tool"]

    def test_while_leave_is_asked(self, turn: Any, reply: Any) -> None:
        hold: list[Any] = []

        def permit(frame: Any) -> dict[str, Any]:
            hold[0].send({"t": "cancel", "reason": "drain"})
            return {"ok": False}

        done = turn([reply("", ("fs_put", {"path": "a"}))], on={"permit": permit}, hold=hold)
        assert done.result["status"] == "cancelled" and done.answers()["c1_0"]["is_error"]

    def test_a_supervisor_that_is_gone_ends_the_turn(self, turn: Any, reply: Any, never: Any) -> None:
        hold: list[Any] = []

        async def serve(tool: str, args: Any) -> Any:
            hold[0].vanish()
            await never()

        assert turn([reply("", ("fs_put", {"path": "a"}))], serve=serve, hold=hold).result is None


class TestResume:
    def test_answers_what_was_left_open_with_the_same_keys(self, turn: Any, reply: Any) -> None:
        a, b = ("fs_put", {"path": "a"}), ("fs_put", {"path": "b"})
        first = turn([reply("", a, a, b), reply("DONE")])
        transcript = first.supervisor.messages()[:3]
        again = turn([reply("DONE", n=2)], transcript=transcript, attempt=2)
        assert [k for *_, k in again.servers.calls] == [k for *_, k in first.servers.calls][1:]
        assert again.result["rounds"] == 2 and again.result["output"] == "DONE"
        assert [m.role for m in again.model.requests[0].messages][-4:] == ["assistant", "tool", "tool", "tool"]

    def test_takes_a_lost_answer_and_a_lost_finish(self, turn: Any, reply: Any) -> None:
        first = turn([reply("DONE")])
        again = turn([reply("other")], transcript=first.supervisor.messages())
        assert again.result["output"] == "DONE" and not again.model.requests
        first = turn([reply("", ("finish", {"result": 7}))])
        again = turn([reply("other")], transcript=first.supervisor.messages())
        assert again.result["output"] == 7 and not again.model.requests

    def test_goes_on_after_the_task_alone(self, turn: Any, reply: Any) -> None:
        again = turn([reply("DONE")], transcript=[{"role": "user", "text": "do it"}])
        assert [m.text for m in again.model.requests[0].messages if m.role == "user"] == ["do it"]


class TestGrants:
    def test_select_what_the_model_sees_and_may_call(self, turn: Any, reply: Any) -> None:
        grants = {"internal": ["finish"], "mcp": ["fs.*"], "disabled": ["fs.put"]}
        done = turn([reply("", ("fs_put", {"path": "a"})), reply("DONE")], grants=grants)
        assert sorted(t.name for t in done.model.requests[0].tools) == ["finish", "fs_get", "fs_stat"]
        assert done.answers()["c1_0"]["is_error"] and not done.servers.calls

    def test_retarget_and_remove(self, turn: Any, reply: Any) -> None:
        grants = {"overrides": {"fs.put": "fs.get", "fs.stat": None}}
        done = turn([reply("", ("fs_put", {"path": "a"})), reply("DONE")], grants=grants)
        assert done.servers.calls[0][0] == "get"
        assert "fs_stat" not in {t.name for t in done.model.requests[0].tools}


class TestInternalTools:
    def test_think_and_sleep(self, turn: Any, reply: Any) -> None:
        calls = (("think", {"thought": "hm"}), ("sleep", {"seconds": 0}), ("sleep", {"seconds": -1}))
        done = turn([reply("", *calls), reply("DONE")])
        answers = done.answers()
        assert [answers[f"c1_{i}"].get("is_error", False) for i in range(3)] == [False, False, True]
        assert not done.supervisor.said("permit")
