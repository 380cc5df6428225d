"""The `openai` dialect: chat completions, as OpenAI and the many servers that speak like it do them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agentd.hookspecs import hookimpl
from agentd.intelligence import sse, wire
from agentd.intelligence.faults import bad_gateway, fault_of, read_text
from agentd.ports.model import (
    DialectSpec,
    Finish,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSchema,
    Usage,
    WireRequest,
)

_PATH = "/chat/completions"
_COMPLETION_TOKENS = re.compile(r"(^|/)(o[1-9]|gpt-[5-9])")
"""Models that refuse `max_tokens` and want `max_completion_tokens`."""
_LENGTH = {"length", "max_tokens", "model_length"}
_FILTERED = {"content_filter", "safety", "blocklist", "prohibited_content", "recitation"}
_KEPT = ("reasoning_details",)
_KEPT_OF_CALL = ("extra_content",)
"""What some providers want back unchanged with the history: signatures of hidden reasoning."""


@hookimpl
def agentd_dialects() -> Iterable[DialectSpec]:
    return [DialectSpec(kind="openai", make=OpenAI)]


class OpenAI:
    """Chat completions. Remembers the ids and tools of the last request, which the answer must fit."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._tools: list[str] = []

    def authorize(self, token: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token}"}

    def write(self, endpoint: str, request: ModelRequest) -> WireRequest:
        self._ids = {call.id for message in request.messages for call in message.calls}
        self._tools = [tool.name for tool in request.tools]
        body: dict[str, Any] = {"model": request.model, "messages": [m for m in map(_message, request.messages) if m]}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body["tool_choice"] = "auto"
        if request.schema is not None:
            schema = {"name": "answer", "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.max_tokens is not None:
            wants_new_name = _COMPLETION_TOKENS.search(request.model)
            body["max_completion_tokens" if wants_new_name else "max_tokens"] = request.max_tokens
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        return WireRequest(url=_url(endpoint), headers=headers, body=wire.to_bytes(body))

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelReply:
        text = read_text(status, body)
        payload = _fold(text) if status < 300 and sse.is_stream(text) else wire.parse_or_none(text)
        choice = _choice(payload) if status < 300 else None
        if choice is None:
            raise fault_of(status, _complaint(payload), text, self._tools)
        return self._reply(wire.mapping(payload), choice)

    def _reply(self, payload: Mapping[str, Any], choice: Mapping[str, Any]) -> ModelReply:
        answer, taken = choice["message"], set(self._ids)
        calls = []
        for wanted in _wanted(answer):
            call = _call(wanted, taken)
            taken.add(call.id)
            calls.append(call)
        refusal = answer.get("refusal")
        text = wire.text_of(answer.get("content"))
        reason = choice.get("finish_reason")
        reason = reason if isinstance(reason, str) else ""
        finish = _finish(reason.lower(), text, bool(calls), bool(refusal))
        if finish == "refused" and not text:
            text = str(refusal)
        message = Message(role="assistant", text=text, calls=tuple(calls), raw=_raw(answer, calls))
        model = payload.get("model")
        return ModelReply(
            message=message,
            finish=finish,
            usage=_usage(payload.get("usage")),
            reason=reason,
            model=model if isinstance(model, str) else "",
        )


def _url(endpoint: str) -> str:
    """`endpoint` with the path of chat completions, once; a query stays where it is."""
    parts = urlsplit(endpoint)
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(_PATH) else path + _PATH))


def _tool(tool: ToolSchema) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": about}


def _message(message: Message) -> dict[str, Any] | None:
    """`message` on the wire; None for an assistant message that says nothing, which servers refuse."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": _result(message)}
    if message.role != "assistant":
        return {"role": message.role, "content": message.text}
    raw = wire.mapping((message.raw or {}).get("openai"))
    out: dict[str, Any] = {"role": "assistant", "content": message.text or None, **wire.mapping(raw.get("message"))}
    if message.calls:
        extras = wire.mapping(raw.get("calls"))
        out["tool_calls"] = [_call_back(call, wire.mapping(extras.get(call.id))) for call in message.calls]
    return out if message.text or message.calls else None


def _result(message: Message) -> str:
    marked = not message.is_error or message.text.startswith("ERROR: ")
    return message.text if marked else f"ERROR: {message.text}"


def _call_back(call: ToolCall, extra: Mapping[str, Any]) -> dict[str, Any]:
    """A call of the history: its arguments are a string that decodes in one step, whatever shape they came in."""
    arguments = json.dumps(call.arguments or {}, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}, **extra}


def _choice(payload: Any) -> dict[str, Any] | None:
    """The first choice that holds a message, None when there is none that can be used."""
    choices = wire.mapping(payload).get("choices")
    for choice in choices if isinstance(choices, list) else ():
        about = wire.mapping(choice)
        if about.get("error") or str(about.get("finish_reason")).lower() == "error":
            return None
        if isinstance(about.get("message"), dict):
            return about
    return None


def _complaint(payload: Any) -> Any:
    """Where the error of an answer stands: at the top, or in its first choice."""
    about = wire.mapping(payload)
    choices = about.get("choices")
    if about.get("error") or not isinstance(choices, list) or not choices:
        return payload
    return wire.mapping(choices[0]) or payload


def _wanted(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message, also in the form that came before tools."""
    calls = answer.get("tool_calls")
    found = [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []
    if not found and isinstance(answer.get("function_call"), dict):
        found = [{"function": answer["function_call"]}]
    return found


def _call(wanted: Mapping[str, Any], taken: set[str]) -> ToolCall:
    function = wire.mapping(wanted.get("function")) or wanted
    arguments, problem = wire.read_arguments(function.get("arguments"))
    name = function.get("name")
    if not isinstance(name, str) or not name:
        name, arguments, problem = "unnamed", None, "the call names no tool"
    return ToolCall(id=wire.fresh_id(wanted.get("id"), taken), name=name, arguments=arguments, problem=problem)


def _finish(reason: str, text: str, calls: bool, refusal: bool) -> Finish:
    """What the answer is. Its content decides; the provider's reason only where that leaves it open."""
    if calls:
        return "calls"
    if refusal and not text:
        return "refused"
    if reason in _FILTERED:
        return "filtered"
    if reason in _LENGTH:
        return "length"
    return "stop" if text.strip() else "empty"


def _raw(answer: Mapping[str, Any], calls: list[ToolCall]) -> dict[str, Any] | None:
    kept = {k: answer[k] for k in _KEPT if answer.get(k)}
    extras = {}
    for call, wanted in zip(calls, _wanted(answer), strict=True):
        if extra := {k: wanted[k] for k in _KEPT_OF_CALL if wanted.get(k)}:
            extras[call.id] = extra
    return {"openai": {"message": kept, "calls": extras}} if kept or extras else None


def _usage(value: Any) -> Usage:
    about = wire.mapping(value)
    first = [wire.count(about.get(k)) for k in ("prompt_tokens", "input_tokens")]
    second = [wire.count(about.get(k)) for k in ("completion_tokens", "output_tokens")]
    return wire.usage_of(
        next((n for n in first if n is not None), None),
        next((n for n in second if n is not None), None),
        wire.count(about.get("total_tokens")),
    )


def _fold(text: str) -> dict[str, Any]:
    """An event stream as the one answer it spells out. A stream that breaks off or carries an error is a fault."""
    fold = _Fold()
    for event in sse.events(text):
        if event.data.strip() == "[DONE]":
            break
        chunk = wire.parse_or_none(event.data)
        if chunk is None:
            raise bad_gateway("an event of the stream is no JSON")
        if event.name == "error" or wire.mapping(chunk).get("error"):
            raise fault_of(200, chunk, event.data)
        if _choice(chunk) is not None:
            return wire.mapping(chunk)
        fold.add(wire.mapping(chunk))
    if fold.reason is None:
        raise bad_gateway("the stream ended before the answer did")
    return fold.payload()


class _Fold:
    """Adds up the deltas of the first choice."""

    def __init__(self) -> None:
        self.reason: Any = None
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[Any, dict[str, Any]] = {}
        self._rest: dict[str, Any] = {}

    def add(self, chunk: Mapping[str, Any]) -> None:
        self._rest.update({k: chunk[k] for k in ("model", "usage") if chunk.get(k)})
        for choice in chunk.get("choices") or ():
            about = wire.mapping(choice)
            if about.get("error") or str(about.get("finish_reason")).lower() == "error":
                raise fault_of(200, about)
            if about.get("index") or not about:
                continue
            self._delta(wire.mapping(about.get("delta")))
            self.reason = about.get("finish_reason") or self.reason

    def _delta(self, delta: Mapping[str, Any]) -> None:
        self._text.append(wire.text_of(delta.get("content")))
        self._refusal.append(wire.text_of(delta.get("refusal")))
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else ():
            self._piece(wire.mapping(piece))
        if isinstance(delta.get("function_call"), dict):
            self._piece({"index": "legacy", "function": delta["function_call"]})

    def _piece(self, piece: Mapping[str, Any]) -> None:
        """A piece belongs to the call of its index; without one, to the call of its id, else to the last."""
        key = piece.get("index")
        if key is None:
            key = piece.get("id") or next(reversed(self._calls), 0)
        call = self._calls.setdefault(key, {"id": None, "function": {"name": "", "arguments": ""}})
        call.update({k: piece[k] for k in ("id", *_KEPT_OF_CALL) if piece.get(k)})
        function, about = call["function"], wire.mapping(piece.get("function"))
        function["name"] = function["name"] or about.get("name") or ""
        more = about.get("arguments")
        if isinstance(more, str):
            function["arguments"] += more
        elif isinstance(more, dict):
            function["arguments"] = json.dumps(more)

    def payload(self) -> dict[str, Any]:
        message: dict[str, Any] = {"content": "".join(self._text), "refusal": "".join(self._refusal) or None}
        if self._calls:
            message["tool_calls"] = list(self._calls.values())
        return {"choices": [{"message": message, "finish_reason": self.reason}], **self._rest}
