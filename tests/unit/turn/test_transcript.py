"""Messages as data and back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentd.ports.model import Message, ToolCall
from agentd.turn.transcript import from_data, in_order, to_data, unanswered

CALLS = st.builds(
    ToolCall,
    id=st.text(min_size=1),
    name=st.text(min_size=1),
    arguments=st.none() | st.dictionaries(st.text(), st.integers()),
    problem=st.none() | st.text(min_size=1),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    text=st.text(),
    calls=st.lists(CALLS, max_size=3).map(tuple),
    call_id=st.text(),
    is_error=st.booleans(),
    raw=st.none() | st.dictionaries(st.text(), st.lists(st.integers())),
)


@given(MESSAGES)
def test_there_and_back(message: Message) -> None:
    assert from_data(json.loads(json.dumps(to_data(message)))) == message


def call(id: str) -> ToolCall:
    return ToolCall(id=id, name="t", arguments={})


def test_what_is_left_open() -> None:
    asked = Message(role="assistant", calls=(call("a"), call("b"), call("c")))
    told: Any = [Message(role="tool", call_id=i) for i in ("b", "x")]
    assert [c.id for c in unanswered([asked, *told])] == ["a", "c"]
    assert unanswered([asked, Message(role="assistant", text="done")]) == []
    assert unanswered([]) == []


def test_answers_take_the_order_of_their_calls() -> None:
    asked = Message(role="assistant", calls=tuple(ToolCall(id=id, name="t", arguments={}) for id in "abc"))
    told = [Message(role="tool", text=id, call_id=id) for id in "cab"]
    rest = [Message(role="assistant", text="so"), Message(role="user", text="and?")]
    assert in_order([rest[1], asked, *told, *rest]) == [rest[1], asked, told[1], told[2], told[0], *rest]
    assert in_order([asked, told[0]]) == [asked, told[0]]
    assert in_order([]) == []
