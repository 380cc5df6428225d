"""Answers and tools seen in the field, against the real clients over loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"
FS = json.loads((DATA / "fs.json").read_text(encoding="utf-8"))


def files(folder: str) -> list[str]:
    return sorted(p.stem for p in (DATA / folder).glob("*.json") if p.stem != "expected")


def load(folder: str, name: str) -> Any:
    return json.loads((DATA / folder / f"{name}.json").read_text(encoding="utf-8"))


def sound(requests: list[Any]) -> None:
    """Every request obeys the contract of strict servers."""
    for request in requests:
        asked: list[str] = []
        for message in request["messages"]:
            calls = message.get("tool_calls") or []
            assert message["role"] != "assistant" or message["content"] or calls
            for call in calls:
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
            asked += [c["id"] for c in calls]
            if message["role"] == "tool":
                asked.remove(message["tool_call_id"])
        assert not asked


class TestArguments:
    expected = load("C01", "expected")

    @pytest.mark.parametrize("name", files("C01"))
    def test_reach_the_tool_or_are_told(self, play: Any, name: str) -> None:
        done = play(load("C01", name), FS)
        sound(done.requests)
        assert done.result["output"] == "DONE"
        kind, _, shape = name.partition("_")
        told = done.requests[1]["messages"][-1]["content"]
        if kind == "noargs":
            assert [c["arguments"] for c in done.calls] == [{}]
        elif shape in self.expected["must_reach_tool_with"]:
            assert [c["arguments"] for c in done.calls] == [self.expected["must_reach_tool_with"][shape]]
        elif shape in self.expected["must_be_reported_to_model_and_tool_not_called"]:
            assert not done.calls and told.startswith("ERROR: ")
        else:
            assert (not done.calls and told.startswith("ERROR: ")) or done.calls[0]["arguments"]


OPENAI = {
    "content_filter": ("refused", None, 1, 0),
    "content_parts": ("completed", "DONE", 1, 0),
    "empty_everything": ("completed", "", 1, 0),
    "empty_string": ("completed", "", 1, 0),
    "eos": ("completed", "hi", 1, 0),
    "legacy_function_call": ("completed", "DONE", 2, 1),
    "length_but_valid_args": ("completed", "DONE", 2, 1),
    "length_cut_args": ("completed", "DONE", 2, 0),
    "length_text": ("completed", "a cut sent", 1, 0),
    "loop_empty_tool_calls": ("failed", None, 2, 0),
    "missing": ("completed", "hi", 1, 0),
    "null_with_calls": ("completed", "DONE", 2, 1),
    "only_reasoning": ("completed", "", 1, 0),
    "refusal_field": ("refused", "no", 1, 0),
    "role_missing": ("completed", "DONE", 1, 0),
    "STOP_upper": ("completed", "hi", 1, 0),
    "stop_with_calls": ("completed", "DONE", 2, 1),
    "tool_calls_but_none": ("completed", "thinking aloud", 1, 0),
    "tool_calls_empty_list": ("completed", "DONE", 2, 0),
    "tool_calls_null": ("completed", "hi", 1, 0),
    "two_choices": ("completed", "first", 1, 0),
}


class TestFinishReasons:
    @pytest.mark.parametrize("name", files("C03"))
    def test_the_content_decides(self, play: Any, name: str) -> None:
        done = play(load("C03", name), FS)
        sound(done.requests)
        seen = (done.result["status"], done.result["output"], len(done.requests), len(done.calls))
        assert seen == OPENAI[name]


@pytest.mark.parametrize("name", files("C05"))
def test_usage_in_any_shape_is_charged(play: Any, name: str) -> None:
    done = play(load("C05", name), FS)
    assert done.result["output"] == "DONE"
    for usage in done.supervisor.said("usage"):
        assert usage["tokens_in"] > 0 and usage["tokens_out"] >= 0
        assert all(isinstance(usage[k], int) for k in ("tokens_in", "tokens_out"))
    bounded = play(load("C05", name), FS, limits={"tokens": 10})
    assert (bounded.result["status"], len(bounded.requests)) == ("exhausted_tokens", 1)


ANTHROPIC = {
    "200_error_body": ("failed", None, 3, 0),
    "context_exceeded": ("completed", "half", 1, 0),
    "empty_end_turn": ("completed", "", 1, 0),
    "input_string": ("completed", "DONE", 2, 1),
    "max_tokens_text": ("completed", "half", 1, 0),
    "max_tokens_tool_cut": ("completed", "DONE", 2, 0),
    "overloaded_529": ("completed", "DONE", 2, 0),
    "parallel_two": ("completed", "DONE", 2, 2),
    "pause_turn": ("completed", "DONE", 2, 0),
    "refusal": ("refused", None, 1, 0),
    "thinking_then_text": ("completed", "DONE", 1, 0),
    "tool_use_no_block": ("completed", "DONE", 2, 0),
    "unknown_block": ("completed", "DONE", 1, 0),
    "unknown_reason": ("completed", "DONE", 1, 0),
    "usage_cache": ("completed", "DONE", 1, 0),
}


class TestAnthropic:
    @pytest.mark.parametrize("name", files("C07"))
    def test_odd_ends(self, play: Any, name: str) -> None:
        done = play(load("C07", name), FS, dialect="anthropic")
        seen = (done.result["status"], done.result["output"], len(done.requests), len(done.calls))
        assert seen == ANTHROPIC[name]
        for request in done.requests:
            for before, after in zip(request["messages"], [*request["messages"][1:], {"content": []}], strict=True):
                if before["role"] == "assistant":
                    assert before["content"]
                    used = [b["id"] for b in before["content"] if b["type"] == "tool_use"]
                    assert used == [b["tool_use_id"] for b in after["content"] if b["type"] == "tool_result"]


TOLD = {
    "absent_but_json_text": ('{"n": 1}', False),
    "absent_plain_text": ("ok", False),
    "array_structured": ("'a'", True),
    "good": ('{"n":1}', False),
    "is_error_with_other_shape": ("bad", True),
    "is_error_without": ("quota exceeded for tenant", True),
    "null_structured": ('{"n":1}', False),
    "wrong_type": ("'a'", True),
}


class TestResults:
    @pytest.mark.parametrize("name", files("C14"))
    def test_reach_the_model(self, play: Any, name: str) -> None:
        steps = load("C03", "stop_with_calls")
        call = steps["steps"][0]["json"]["choices"][0]["message"]["tool_calls"][0]["function"]
        call["name"], call["arguments"] = "fs_a", "{}"
        done = play(steps, load("C14", name))
        text, is_error = TOLD[name]
        told = done.requests[1]["messages"][-1]["content"]
        assert text in told and told.startswith("ERROR: ") == is_error
        (call,) = done.calls
        assert call["_meta"]["agent/run_id"] == "r1" and call["_meta"]["agent/instance"] == "me"
        assert call["_meta"]["agent/idempotency_key"] == done.supervisor.said("permit")[0]["key"]


class TestCatalogue:
    steps = load("C03", "stop_with_calls")

    def test_is_told_and_can_be_handed_to_a_later_turn(self, play: Any) -> None:
        first = play(self.steps, FS)
        (frame,) = first.supervisor.said("catalogue")
        told = frame["servers"]["fs"]
        assert told["ok"] and told["tools"] == ["put", "get", "health"] and told["protocol"]
        again = play(self.steps, FS, catalogue=frame["servers"])
        assert again.result["output"] == "DONE" and not again.supervisor.said("catalogue")
        assert again.requests[0]["tools"] == first.requests[0]["tools"] and len(again.calls) == 1

    def test_a_dead_server_costs_its_own_tools(self, play: Any) -> None:
        done = play(self.steps, FS, extra={"name": "dead", "endpoint": "http://127.0.0.1:9/mcp"})
        told = done.supervisor.said("catalogue")[0]["servers"]
        assert told["fs"]["ok"] and not told["dead"]["ok"] and told["dead"]["err"]
        assert done.result["output"] == "DONE" and len(done.calls) == 1

    def test_the_supervisor_may_end_the_turn(self, play: Any) -> None:
        done = play(self.steps, FS, on={"catalogue": lambda _: {"ok": False, "msg": "dead is required"}})
        assert done.result["status"] == "failed" and not done.requests
        assert done.result["err"] == {"code": "server", "message": "dead is required"}
