"""Messages as data: how a conversation crosses the frames and lies in the store. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentd.ports.model import Message, ToolCall


def to_data(message: Message) -> dict[str, Any]:
    """`message` as a JSON object; fields at their defaults are left out."""
    data: dict[str, Any] = {"role": message.role}
    if message.text:
        data["text"] = message.text
    if message.calls:
        data["calls"] = [_call_to_data(c) for c in message.calls]
    if message.call_id:
        data["call_id"] = message.call_id
    if message.is_error:
        data["is_error"] = True
    if message.raw is not None:
        data["raw"] = message.raw
    return data


def from_data(data: Mapping[str, Any]) -> Message:
    """The message that :func:`to_data` made `data` of."""
    return Message(
        role=data["role"],
        text=data.get("text", ""),
        calls=tuple(_call_from_data(c) for c in data.get("calls", ())),
        call_id=data.get("call_id", ""),
        is_error=data.get("is_error", False),
        raw=data.get("raw"),
    )


def unanswered(messages: Iterable[Message]) -> list[ToolCall]:
    """The calls of the last assistant message that no tool message after it answers, in order."""
    open_calls: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "assistant":
            open_calls = {c.id: c for c in message.calls}
        elif message.role == "tool":
            open_calls.pop(message.call_id, None)
    return list(open_calls.values())


def in_order(messages: Iterable[Message]) -> list[Message]:
    """`messages` with the answers to the calls of one message in the order of these calls, as they came or not."""
    ordered: list[Message] = []
    answers: list[Message] = []
    place: dict[str, int] = {}
    for message in [*messages, None]:
        if message is not None and message.role == "tool":
            answers.append(message)
            continue
        ordered += sorted(answers, key=lambda answer: place.get(answer.call_id, 0))
        answers = []
        if message is not None:
            ordered.append(message)
            place = {call.id: i for i, call in enumerate(message.calls)}
    return ordered


def _call_to_data(call: ToolCall) -> dict[str, Any]:
    data: dict[str, Any] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if call.problem is not None:
        data["problem"] = call.problem
    return data


def _call_from_data(data: Mapping[str, Any]) -> ToolCall:
    return ToolCall(id=data["id"], name=data["name"], arguments=data["arguments"], problem=data.get("problem"))
