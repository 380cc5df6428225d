"""The model side of a turn: the client, opened from the work."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from agentd.builtin import MODULES
from agentd.clock import SystemClock
from agentd.errors import PluginError
from agentd.ports.model import Dialect, DialectSpec, ModelReply, ModelRequest
from agentd.turn.auth import Asked

if TYPE_CHECKING:
    from agentd.turn.channel import Channel
    from agentd.turn.work import Work


class Model(Protocol):
    """What a turn needs of it (:class:`agentd.intelligence.client.ModelClient`)."""

    async def call(self, request: ModelRequest, deadline: float | None = None) -> ModelReply:
        """One answer; `deadline` in monotonic seconds. Raises AgentdError when no endpoint gives one."""

    async def close(self) -> None:
        """Let the connections go."""

    @property
    def health(self) -> list[list[Any]]:
        """What was learnt of each endpoint."""


def open_model(work: Work, channel: Channel) -> Model:
    """The client for the endpoints that the work names. Dials nothing. Raises PluginError for an unknown dialect."""
    from agentd import net
    from agentd.intelligence.client import Endpoint, ModelClient

    frame: Mapping[str, Any] = work.frame.get("model") or {}
    timeout = frame.get("timeout") or 120.0
    known = ("url", "token", "token_file", "headers", "mock")
    auth = Asked(channel, "intelligence") if frame.get("auth") else None
    endpoints = [
        Endpoint(**{k: e[k] for k in known if e.get(k) is not None}, auth=auth) for e in frame.get("endpoints") or ()
    ]
    return ModelClient(
        endpoints,
        open_dialect(frame.get("dialect") or "openai", frame.get("plugins") or {}),
        model=frame.get("model") or "",
        timeout=timeout,
        headers=frame.get("headers") or {},
        log=channel.log,
        clock=SystemClock(),
        net=lambda: net.client(tls_ca=work.frame.get("tls_ca"), timeout=timeout, environ=work.frame.get("env") or {}),
        content=work.content,
        health=frame.get("health"),
    )


def open_dialect(kind: str, plugins: Mapping[str, Any]) -> Dialect:
    """The dialect called `kind`: the kernel's own without a search, else an installed plugin's.

    `plugins` is ``{allow, disabled}`` of the configuration.
    """
    module = f"agentd.builtin.{kind}"
    if module in MODULES:
        specs = list(importlib.import_module(module).agentd_dialects())
    else:
        from agentd.plugins import load

        found = load(plugins.get("allow"), plugins.get("disabled") or ())
        specs = list(found.dialects.values())
        if kind not in found.dialects:
            raise PluginError(found.missing("dialects", kind))
    spec: DialectSpec = next(s for s in specs if s.kind == kind)
    return spec.make()
