"""What an answer of the model means: its content decides, the provider's reason only where there is none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from agentd.errors import AgentdError
from agentd.ports.model import ModelReply

_PROMISED = frozenset({"tool_calls", "tool-calls", "tool_use", "function_call"})
_CUT = frozenset({"length", "max_tokens", "model_context_window_exceeded"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a turn ends: a status of the turn, its output, and the error as ``{code, message}``."""

    status: str
    output: Any = None
    err: dict[str, Any] | None = None


def failed(status: str, code: str, message: str, output: Any = None) -> Outcome:
    """An outcome that is no success."""
    return Outcome(status=status, output=output, err={"code": code, "message": message})


def failure(error: AgentdError) -> Outcome:
    """The outcome of a turn that `error` ended; its fields go along, such as whether a retry may help."""
    data = error.to_data()
    return Outcome(status="failed", err=data if data["fields"] else {"code": error.code, "message": error.message})


Meaning = Literal["calls", "answer", "go_on", "ask_again"]


def judge(reply: ModelReply, *, asked_again: bool) -> Meaning | Outcome:
    """What to do with `reply`.

    calls: perform them. answer: the text is the final answer (it may be empty). go_on: send the content back and
    call again. ask_again: calls were announced and none came; `asked_again` tells that this was tried already.
    """
    message, reason = reply.message, reply.reason.lower()
    if message.calls:
        return "calls"
    if reply.finish == "refused":
        return failed("refused", "refused", "the model refused", message.text or None)
    if reply.finish == "filtered":
        return failed("refused", "filtered", "the provider's content filter withheld the answer", message.text or None)
    if reply.finish == "paused":
        return "go_on"
    if message.text.strip():
        return "answer"
    if reason in _PROMISED or reply.finish == "calls":
        if asked_again:
            return failed("failed", "empty", "the model announced tool calls twice and made none")
        return "ask_again"
    if reason in _CUT or reply.finish == "length":
        return failed("failed", "cut", "the answer was cut before its first word; raise intelligence.max_tokens")
    return "answer"


def missing(arguments: dict[str, Any], parameters: Any, reason: str) -> list[str]:
    """The required arguments that a call lacks in an answer that was cut: such a call is half a command."""
    if reason.lower() not in _CUT or not isinstance(parameters, dict):
        return []
    required = parameters.get("required")
    return [str(r) for r in required if r not in arguments] if isinstance(required, list) else []
