"""What the MCP client is told and what it answers: frozen values with no behaviour, and no SDK class among them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentd.errors import AgentdError
from agentd.ports.auth import Auth

Json = dict[str, Any]

Elicit = Callable[[str, Json], Awaitable[Json]]
"""Asks a person what a server wants to know: the server's name and the request's params (`message`,
`requestedSchema`, …); answers ``{"action": "accept" | "decline" | "cancel", "content": {…}}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One configured server; headers are resolved already.

    `allow` and `exclude` are globs of bare tool names. `timeout` is in seconds, of one request. `protocol` is a
    revision known from an earlier connection: it spares the question, never decides for the server.
    """

    name: str
    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ns: str | None = None
    allow: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    timeout: float = 60.0
    required: bool = False
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    auth: Auth | None = field(default=None, repr=False)
    protocol: str | None = None

    @property
    def prefix(self) -> str:
        """What its tools' full names begin with."""
        return self.ns or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as a server offers it, judged and repaired: `name` is the bare name, `schema` its input schema."""

    name: str
    description: str
    schema: Json
    output_schema: Json | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What was wrong with a server's answer, and was repaired or left out; `tool` is empty for the whole listing."""

    tool: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """A server that answered: its revision, its tools, and which other listings and services it advertises."""

    protocol: str
    tools: tuple[Tool, ...] = ()
    resources: bool = False
    prompts: bool = False
    completions: bool = False
    subscribe: bool = False
    instructions: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A server that did not, and why, in words for the operator."""

    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered.

    `value` is the structured content, else its text parsed as JSON, else the text. `text` is what a model reads.
    `is_error`: the tool failed, or its answer is not what it promised; the text then says so. `warnings` are for the
    log.
    """

    value: Any
    text: str
    is_error: bool = False
    warnings: tuple[str, ...] = ()


class McpFault(AgentdError):
    """A request to a server that got no usable answer: a JSON-RPC error, a timeout, or a fault of the transport.

    `rpc_code` and `http_status` are 0 where there was none. `retry` tells whether another attempt may help;
    `session_lost`, that the server does not know our session (or us) any more and has done nothing.
    """

    code = "mcp"

    def __init__(
        self,
        message: str,
        /,
        *,
        rpc_code: int = 0,
        http_status: int = 0,
        retry: bool = False,
        session_lost: bool = False,
        **fields: Any,
    ) -> None:
        super().__init__(message, rpc_code=rpc_code, http_status=http_status, **fields)
        self.rpc_code, self.http_status, self.retry, self.session_lost = rpc_code, http_status, retry, session_lost
