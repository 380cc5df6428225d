"""What a turn is asked to do: the first frame, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentd.ports.model import Message
from agentd.turn.transcript import from_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one turn: model rounds, tokens in and out together, and the deadline in epoch seconds."""

    rounds: int = 500
    tokens: int | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What the model may see: globs of internal and MCP tools, what nobody may call, and who serves instead."""

    internal: tuple[str, ...] = ("*",)
    mcp: tuple[str, ...] = ("*",)
    disabled: tuple[str, ...] = ()
    overrides: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One turn. `transcript` is what an earlier attempt of this same turn has said, `messages` the conversation before.

    `frame` is the whole first frame, for the parts that are somebody else's words (`model`, `servers`, `catalogue`).
    """

    run: str
    step: str
    turn: str
    attempt: int
    persona: str
    instruction: str
    prompt: str
    messages: tuple[Message, ...]
    transcript: tuple[Message, ...]
    limits: Limits
    grants: Grants
    schema: Mapping[str, Any] | None
    content: bool
    frame: Mapping[str, Any]

    @property
    def scope(self) -> tuple[str, ...]:
        """What makes a call's key this turn's own."""
        return (self.run, self.step) if self.step else (self.run, self.turn)


def read(frame: Mapping[str, Any]) -> Work:
    """The work in `frame`; what is absent has its default."""
    limits, grants = frame.get("limits") or {}, frame.get("grants") or {}
    return Work(
        run=str(frame.get("run") or ""),
        step=str(frame.get("step") or ""),
        turn=str(frame.get("turn") or ""),
        attempt=int(frame.get("attempt") or 1),
        persona=frame.get("persona") or "",
        instruction=frame.get("instruction") or "",
        prompt=frame.get("prompt") or "",
        messages=tuple(from_data(m) for m in frame.get("messages") or ()),
        transcript=tuple(from_data(m) for m in frame.get("transcript") or ()),
        limits=Limits(rounds=limits.get("rounds") or 500, tokens=limits.get("tokens"), deadline=limits.get("deadline")),
        grants=Grants(
            internal=_globs(grants.get("internal"), ("*",)),
            mcp=_globs(grants.get("mcp"), ("*",)),
            disabled=_globs(grants.get("disabled"), ()),
            overrides=grants.get("overrides") or {},
        ),
        schema=frame.get("output_schema"),
        content=bool((frame.get("log") or {}).get("content")),
        frame=frame,
    )


def _globs(value: list[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    return default if value is None else tuple(value)
