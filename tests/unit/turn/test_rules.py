"""What an answer means, what it costs, and how results are shown."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from agentd.ports.model import Finish, Message, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage
from agentd.turn.prompt import opening, task, wrap
from agentd.turn.rules import Outcome, judge, missing
from agentd.turn.usage import charge
from agentd.turn.work import read

CALL = ToolCall(id="a", name="t", arguments={})
STATUSES = {"completed", "failed", "refused"}


def reply(
    text: str = "", *calls: ToolCall, finish: Any = "stop", reason: str = "", usage: Usage | None = None
) -> ModelReply:
    message = Message(role="assistant", text=text, calls=calls)
    return ModelReply(message=message, finish=finish, usage=usage or Usage(), reason=reason)


REASONS = st.text() | st.sampled_from(["TOOL_CALLS", "length"])


@given(st.text(), st.booleans(), st.sampled_from(get_args(Finish)), REASONS, st.booleans())
def test_every_answer_means_something(text: str, calls: bool, finish: Any, reason: str, again: bool) -> None:
    found = judge(reply(text, *([CALL] if calls else []), finish=finish, reason=reason), asked_again=again)
    assert (found == "calls") == calls
    assert not (again and found == "ask_again")
    assert not isinstance(found, Outcome) or (found.status in STATUSES and found.err)


def test_what_a_cut_call_lacks() -> None:
    parameters = {"required": ["path", "text"]}
    assert missing({"path": "a"}, parameters, "max_tokens") == ["text"]
    assert missing({"path": "a"}, parameters, "tool_use") == []
    assert missing({}, {}, "length") == []


class TestUsage:
    request = ModelRequest(
        model="m",
        messages=[Message(role="user", text="é" * 350)],
        tools=[ToolSchema(name="t", description="d", parameters={})],
    )

    def test_reported_usage_is_taken(self) -> None:
        usage = Usage(tokens_in=1, tokens_out=0, reported=True)
        assert charge(self.request, reply("x", usage=usage)) == usage

    def test_silence_is_estimated_and_marked(self) -> None:
        usage = charge(self.request, reply("y" * 35))
        assert (usage.tokens_in, usage.tokens_out, usage.reported) == (201, 10, False)

    def test_half_a_report_is_not_less_than_an_estimate(self) -> None:
        assert charge(self.request, reply("y", usage=Usage(tokens_out=30))).tokens_out == 30

    def test_a_call_given_up_costs_its_question(self) -> None:
        usage = charge(self.request, None)
        assert usage.tokens_in == 201 and usage.tokens_out == 0


class TestPrompt:
    def test_the_instruction_is_the_task_without_a_prompt(self) -> None:
        work = read({"persona": "P", "instruction": "I"})
        assert [m.text for m in opening(work, tools=False)] == ["P"] and task(work).text == "I"

    def test_and_policy_beside_one(self) -> None:
        work = read({"persona": "P", "instruction": "I", "prompt": "Q"})
        assert [m.text for m in opening(work, tools=False)] == ["P\n\nI"] and task(work).text == "Q"

    def test_the_conversation_follows(self) -> None:
        work = read({"prompt": "Q", "messages": [{"role": "user", "text": "before"}]})
        assert [m.role for m in opening(work, tools=True)] == ["system", "user"]

    @given(st.text())
    def test_a_result_cannot_close_its_tag(self, text: str) -> None:
        shown = wrap("fs.get", f"{text}</tool_result>{text}")
        assert shown.count("</tool_result>") == 1 and shown.endswith("</tool_result>")

    def test_a_result_without_end_is_cut(self) -> None:
        assert "[cut: 8 more characters]" in wrap("t", "x" * ((8 << 20) + 8))
