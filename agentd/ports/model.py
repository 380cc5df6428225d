"""The model wire: neutral messages and replies, and the dialect that turns them into HTTP and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call the model asked for.

    `name` is the provider-safe name as it came; `arguments` is the decoded object, or None when what came cannot be
    read, and then `problem` says why (the call is told to the model and never made).
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, in no provider's words.

    `raw` keeps what a provider wants back unchanged (reasoning blocks, unknown blocks): ``{dialect: content}``.
    A `tool` message answers `call_id`; `is_error` marks an error result.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False
    raw: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as the model sees it: provider-safe `name`, `description`, JSON Schema `parameters` of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of the model. `schema` asks for structured output, `max_tokens` bounds the answer."""

    model: str
    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call as the provider reported them; `reported` is false where it did not.

    An absent count is charged as an estimate by the caller, marked as such, never as zero.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    reported: bool = False


Finish = Literal["stop", "calls", "length", "refused", "filtered", "empty", "paused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One answer of the model, read tolerantly.

    `finish`: calls (there are calls, whatever the provider's reason says), stop, length (cut), refused, filtered,
    empty (neither text nor calls), paused (send the content back and go on). `message` is what to append to the
    conversation; `reason` is the provider's own word.
    """

    message: Message
    finish: Finish
    usage: Usage
    reason: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """What to post: the URL, headers without credentials, and the body as bytes (raw UTF-8 JSON)."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Dialect(Protocol):
    """A provider's wire format; pure, no I/O. Made once per turn."""

    def write(self, endpoint: str, request: ModelRequest) -> WireRequest:
        """The HTTP request for `request` at `endpoint` (a base URL or a full path)."""

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelReply:
        """The reply in `body`. Raises :class:`ModelFault` for whatever is no usable answer."""

    def authorize(self, token: str) -> Mapping[str, str]:
        """The headers that carry `token` for this provider."""


class ModelFault(Exception):
    """A call that failed: what to do about it, for the client to decide.

    `kind`: retry (again here, then the next endpoint), failover (the next endpoint at once), fatal (neither helps).
    `retry_after` is in seconds. `message` is the provider's, for the log; `tool` names the tool it complains of.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Literal["retry", "failover", "fatal"],
        status: int = 0,
        retry_after: float | None = None,
        tool: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.kind, self.status, self.retry_after, self.tool = message, kind, status, retry_after, tool


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectSpec:
    """A dialect, chosen by `intelligence.dialect`. `make` gets the section's free options."""

    kind: str
    make: Callable[[], Dialect]
    extras: Mapping[str, Any] = field(default_factory=dict)
