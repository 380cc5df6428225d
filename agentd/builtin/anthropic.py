"""The `anthropic` dialect: the Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agentd.hookspecs import hookimpl
from agentd.intelligence import sse, wire
from agentd.intelligence.faults import bad_gateway, fault_of, read_text
from agentd.ports.model import DialectSpec, Finish, Message, ModelReply, ModelRequest, ToolCall, Usage, WireRequest

_PATH = "/messages"
_VERSION = "2023-06-01"
_MAX_TOKENS = 8192
"""The API wants a bound; this one is known to every model in service."""
_CUT = {"max_tokens", "model_context_window_exceeded"}

Block = dict[str, Any]


@hookimpl
def agentd_dialects() -> Iterable[DialectSpec]:
    return [DialectSpec(kind="anthropic", make=Anthropic)]


class Anthropic:
    """The Messages API. Remembers the ids and tools of the last request, which the answer must fit."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._tools: list[str] = []

    def authorize(self, token: str) -> Mapping[str, str]:
        return {"x-api-key": token}

    def write(self, endpoint: str, request: ModelRequest) -> WireRequest:
        self._ids = {call.id for message in request.messages for call in message.calls}
        self._tools = [tool.name for tool in request.tools]
        body: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens or _MAX_TOKENS}
        if system := "\n\n".join(m.text for m in request.messages if m.role == "system" and m.text):
            body["system"] = system
        body["messages"] = _conversation(request.messages)
        if request.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": t.parameters} for t in request.tools
            ]
            body["tool_choice"] = {"type": "auto"}
        if request.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "anthropic-version": _VERSION,
        }
        return WireRequest(url=_url(endpoint), headers=headers, body=wire.to_bytes(body))

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelReply:
        text = read_text(status, body)
        payload = _fold(text) if status < 300 and sse.is_stream(text) else wire.parse_or_none(text)
        about = wire.mapping(payload)
        content = about.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if status >= 300 or about.get("error") or not isinstance(content, list):
            raise fault_of(status, payload, text, self._tools)
        return self._reply(about, [block for block in content if isinstance(block, dict)])

    def _reply(self, payload: Mapping[str, Any], blocks: list[Block]) -> ModelReply:
        reason = payload.get("stop_reason")
        reason = reason if isinstance(reason, str) else ""
        calls, blocks = self._calls(blocks, cut=reason in _CUT)
        text = "".join(wire.text_of([b]) for b in blocks if b.get("type") == "text")
        message = Message(role="assistant", text=text, calls=calls, raw={"anthropic": blocks} if blocks else None)
        model = payload.get("model")
        return ModelReply(
            message=message,
            finish=_finish(reason, text, bool(calls)),
            reason=reason,
            usage=_usage(payload.get("usage")),
            model=model if isinstance(model, str) else "",
        )

    def _calls(self, blocks: list[Block], *, cut: bool) -> tuple[tuple[ToolCall, ...], list[Block]]:
        """The calls among `blocks`, and the blocks as they may be sent back: ids unique, inputs objects.

        The last block of an answer that was cut is not executed: its input may be a part of what was meant, and an
        empty object where nothing had come yet.
        """
        taken, calls, kept = set(self._ids), list[ToolCall](), list[Block]()
        for place, block in enumerate(blocks, 1):
            if block.get("type") != "tool_use":
                kept.append(block)
                continue
            arguments, problem = wire.read_arguments(block.get("input"))
            if cut and place == len(blocks):
                arguments, problem = None, "the answer was cut at its length limit before the arguments were complete"
            name = block.get("name")
            if not isinstance(name, str) or not name:
                name, arguments, problem = "unnamed", None, "the call names no tool"
            call = ToolCall(
                id=wire.fresh_id(block.get("id"), taken, "toolu"), name=name, arguments=arguments, problem=problem
            )
            taken.add(call.id)
            calls.append(call)
            kept.append({**block, "id": call.id, "name": name, "input": arguments or {}})
        return tuple(calls), kept


def _url(endpoint: str) -> str:
    """`endpoint` with the path of the Messages API, once; a query stays where it is."""
    parts = urlsplit(endpoint)
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(_PATH) else path + _PATH))


def _conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in turns of user and assistant, none empty: results of one answer stand in one user message."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[Block]:
    """The content of `message`; blocks of blank text are left out, since they are refused."""
    if message.role == "tool":
        return [_result(message)]
    raw = (message.raw or {}).get("anthropic") if message.role == "assistant" else None
    blocks = list(raw) if isinstance(raw, list) else [{"type": "text", "text": message.text}, *map(_use, message.calls)]
    return [b for b in blocks if b.get("type") != "text" or wire.text_of([b]).strip()]


def _result(message: Message) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
    if message.is_error:
        block |= {"is_error": True, "content": message.text or "ERROR"}
    return block


def _use(call: ToolCall) -> Block:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}}


def _finish(reason: str, text: str, calls: bool) -> Finish:
    if reason == "refusal":
        return "refused"
    if calls:
        return "calls"
    if reason == "pause_turn":
        return "paused"
    if reason in _CUT:
        return "length"
    return "stop" if text.strip() else "empty"


def _usage(value: Any) -> Usage:
    """What was read from and written to the provider's cache is input too."""
    about = wire.mapping(value)
    fresh = wire.count(about.get("input_tokens"))
    cached = [wire.count(about.get(f"cache_{k}_input_tokens")) or 0 for k in ("creation", "read")]
    return wire.usage_of(None if fresh is None else fresh + sum(cached), wire.count(about.get("output_tokens")))


def _fold(text: str) -> dict[str, Any]:
    """An event stream as the one answer it spells out. A stream that breaks off or carries an error is a fault."""
    message: dict[str, Any] = {}
    blocks: dict[Any, Block] = {}
    for event in sse.events(text):
        if event.data.strip() == "[DONE]":
            break
        data = wire.mapping(wire.parse_or_none(event.data))
        if not data:
            raise bad_gateway("an event of the stream is no JSON")
        if event.name == "error" or data.get("error"):
            raise fault_of(200, data, event.data)
        kind, index = data.get("type"), data.get("index")
        if kind == "message":
            return data
        if kind == "message_start":
            message = dict(wire.mapping(data.get("message")))
        elif kind == "content_block_start":
            blocks[index] = dict(wire.mapping(data.get("content_block")))
        elif kind == "content_block_delta" and index in blocks:
            _grow(blocks[index], wire.mapping(data.get("delta")))
        elif kind == "message_delta":
            message.update(wire.mapping(data.get("delta")))
            message["usage"] = {**wire.mapping(message.get("usage")), **wire.mapping(data.get("usage"))}
    if not message.get("stop_reason"):
        raise bad_gateway("the stream ended before the answer did")
    return {**message, "content": list(blocks.values())}


_GROWS = {"text": "text", "thinking": "thinking", "signature": "signature"}


def _grow(block: Block, delta: Mapping[str, Any]) -> None:
    for key, target in _GROWS.items():
        if isinstance(delta.get(key), str):
            block[target] = str(block.get(target) or "") + delta[key]
    if isinstance(delta.get("partial_json"), str):
        begun = block.get("input")
        block["input"] = (begun if isinstance(begun, str) else "") + delta["partial_json"]
