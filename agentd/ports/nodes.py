"""Start nodes and step nodes: the kinds of a workflow.

A kind is declared by a spec (its fields as a pydantic model, checked at load) and served by a function. Pure kinds
run inside the engine's fixpoint; the others are effects, performed after the checkpoint that announces them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agentd.ports.host import Clock, Host, Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """What an effect returns to sleep durably: the run wakes at `until` (epoch seconds) or when `on` happens.

    `on` is ``{"signal": name}``, ``{"run": id}``, ``{"gate": id}`` and the like; `timeout` is an absolute deadline.
    """

    on: Mapping[str, Any] = field(default_factory=dict)
    until: float | None = None


class StepCall(Protocol):
    """One execution of an effect step.

    `fields` are the node's fields with templates rendered; `key` is the retry-stable idempotency key;
    `deadline` is monotonic seconds. `host` gives the services (`host.mcp`, `host.http`, `host.turns`, `host.journal`
    where the kernel offers them).
    """

    run_id: str
    step_id: str
    workflow: str
    attempt: int
    key: str
    fields: Mapping[str, Any]
    deadline: float | None
    host: Host
    log: Log


StepResult = Any
"""A JSON value (the step's output), or :class:`Suspend`. Failure is :class:`agentd.errors.StepFailed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpec:
    """A kind of step.

    `fields` is the pydantic model of the kind's own fields (the cross-cutting ones are the kernel's). `perform` may
    return its result directly or as an awaitable; it is called after the step's `running` record is durable, at least
    once, and must pass `call.key` on so that doing twice is doing once. `bodies` names the fields that hold nested
    steps. `pure` kinds get no `perform`: the engine evaluates them. `asks_model` kinds use tokens, in a child process.
    """

    kind: str
    fields: type[BaseModel]
    perform: Callable[[StepCall], StepResult | Awaitable[StepResult]] | None = None
    pure: bool = False
    asks_model: bool = False
    bodies: tuple[str, ...] = ()
    help: str = ""


class StartSink(Protocol):
    """What a start node fires into."""

    async def fire(self, payload: Any, *, key: str | None = None, state: dict[str, Any] | None = None) -> str | None:
        """Put an event in the inbox; its id once durable, None when a filter or its inputs kept it out.

        The same `key` twice is one event. `state` becomes the node's in the same commit.
        """

    async def state(self) -> dict[str, Any] | None:
        """The node's durable state, None before the first :meth:`save`."""

    async def save(self, state: dict[str, Any]) -> None:
        """Keep the node's durable state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSpec:
    """A kind of start node.

    `lifetime` tells the shape of an instance that has one: `long` keeps a daemon up, `job` does not. `arm` runs as a
    task of its own for as long as the node is armed and is cancelled by a drain; None when the kernel's own loop
    drives it.
    """

    kind: str
    fields: type[BaseModel]
    arm: Callable[[Any, StartSink, Clock, Log], Awaitable[None]] | None = None
    lifetime: Literal["job", "long"] = "long"
    help: str = ""
