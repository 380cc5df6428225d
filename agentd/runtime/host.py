"""What opened plugins and steps may use of the instance; see :class:`agentd.ports.host.Host`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentd.ports.host import Clock, Log, Secrets


@dataclass(slots=True, kw_only=True)
class InstanceHost:
    """The services of one instance; `services` are the kernel's own, by name, once they are open."""

    instance: str
    clock: Clock
    log: Log
    secrets: Secrets
    environ: Mapping[str, str]
    services: dict[str, Any] = field(default_factory=dict)
