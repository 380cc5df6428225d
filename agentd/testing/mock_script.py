"""What the mock model says: a script, matched against each request. Pure.

The format is described in `docs/mock-model.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentd.config.document import Duration
from agentd.errors import ConfigError


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Call(_Part):
    """A tool call: `name` as the model sees it or as agentd names it (`server.tool`)."""

    name: str
    arguments: Any = Field(default_factory=dict)


class Tokens(_Part):
    input: int = Field(10, alias="in")
    output: int = Field(5, alias="out")


class Failure(_Part):
    """An HTTP error, given to the first `times` requests that come to this round; None is every one."""

    status: int = 500
    message: str = "scripted error"
    code: str | None = None
    retry_after: Duration | None = None
    times: int | None = None


class Round(_Part):
    """One answer, and when it is given."""

    turn: int | None = None
    round: int | None = None
    contains: str | None = None
    text: str | None = None
    calls: list[Call] = Field(default_factory=list)
    usage: Tokens | None = Tokens(**{"in": 10, "out": 5})
    finish: str | None = None
    error: Failure | None = None
    delay: Duration = 0.0


class Script(_Part):
    """The rounds of a script, from top to bottom; the first that fits a request answers it."""

    rounds: list[Round] = Field(min_length=1)

    def pick(self, messages: Sequence[Mapping[str, Any]]) -> int | None:
        """The index of the round that answers a request with these messages, None when none fits.

        A round without `round` and `contains` stands for its place among such rounds of the same turn; a request's
        round is one more than the answers since the last user message.
        """
        turn = sum(m.get("role") == "user" for m in messages)
        place = 1
        for m in messages:
            place = 1 if m.get("role") == "user" else place + (m.get("role") == "assistant")
        last = text_of(messages[-1].get("content")) if messages else ""
        places: dict[int | None, int] = {}
        for index, entry in enumerate(self.rounds):
            wanted = entry.round
            if wanted is None and entry.contains is None:
                wanted = places[entry.turn] = places.get(entry.turn, 0) + 1
            fits = entry.turn in (None, turn) and wanted in (None, place)
            if fits and (entry.contains is None or entry.contains in last):
                return index
        return None


FINAL = Script(rounds=[Round(text="final", contains="")])


def load(spec: str | Mapping[str, Any]) -> Script:
    """The script of ``mock:final``, ``mock:FILE.yaml`` or a document. Raises :class:`ConfigError`."""
    if isinstance(spec, str):
        name = spec.removeprefix("mock:")
        if name == "final":
            return FINAL
        document, where = _read(name), name
    else:
        document, where = spec, "the mock script"
    try:
        return Script.model_validate(document)
    except ValidationError as e:
        first = e.errors()[0]
        path = ".".join(str(p) for p in first["loc"])
        raise ConfigError(f"{where}: {path}: {first['msg']} (the format: docs/mock-model.md)") from e


def _read(path: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as e:
        raise ConfigError(f"the mock script {path} cannot be read: {e.strerror}") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise ConfigError(f"the mock script {path} is no YAML: {e}") from e


def text_of(content: Any) -> str:
    """The text of a message on the wire."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def answer(entry: Round, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The chat completion that `entry` gives to `request`; `number` makes its ids unique."""
    messages = request.get("messages") or [{}]
    last = text_of(messages[-1].get("content"))
    tools = {t.get("function", {}).get("name", "") for t in request.get("tools") or ()}
    message: dict[str, Any] = {"role": "assistant", "content": _filled(entry.text, last)}
    if entry.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{i}",
                "type": "function",
                "function": {"name": _tool(call.name, tools), "arguments": _arguments(call.arguments, last)},
            }
            for i, call in enumerate(entry.calls)
        ]
    reason = entry.finish or ("tool_calls" if entry.calls else "stop")
    body: dict[str, Any] = {
        "id": f"mock-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model") or "mock",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    if entry.usage is not None:
        spent = entry.usage
        body["usage"] = {
            "prompt_tokens": spent.input,
            "completion_tokens": spent.output,
            "total_tokens": spent.input + spent.output,
        }
    return body


def _filled(text: str | None, last: str) -> str | None:
    return None if text is None else text.replace("{{last}}", last)


def _arguments(value: Any, last: str) -> str:
    """The arguments as a JSON string; a string in the script is sent as it stands, so that a test can send nonsense."""
    if isinstance(value, str):
        return value
    return json.dumps(_deep(value, last), ensure_ascii=False)


def _deep(value: Any, last: str) -> Any:
    if isinstance(value, str):
        return value.replace("{{last}}", last)
    if isinstance(value, dict):
        return {k: _deep(v, last) for k, v in value.items()}
    return [_deep(v, last) for v in value] if isinstance(value, list) else value


def _tool(name: str, tools: set[str]) -> str:
    safe = name.replace(".", "_")
    return safe if name not in tools and safe in tools else name
