"""The kernel's kinds of start node, one module each: when to fire. What firing means is the door's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentd.runtime.starts.base import Start
from agentd.runtime.starts.event import Event
from agentd.runtime.starts.once import Manual, Once
from agentd.runtime.starts.signal import Signal

KINDS: dict[str, Callable[[Any], Start]] = {"once": Once, "manual": Manual, "signal": Signal, "event": Event}
"""Kind to class; a kind of a plugin is served by :class:`agentd.runtime.starts.plugged.Plugged`."""
