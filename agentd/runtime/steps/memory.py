"""`memory.get|set|list|delete`: what changes is written in the commit that ends the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Done

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call
    from agentd.runtime.runs import Performer


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kinds of this family."""
    steps = MemorySteps(instance)
    return {
        "memory.get": steps.get, "memory.set": steps.set, "memory.list": steps.list, "memory.delete": steps.delete,
    }  # fmt: skip


class MemorySteps:
    """Nothing here waits, so no step of this family costs a task."""

    def __init__(self, instance: Instance) -> None:
        self._memory, self._clock = instance.memory, instance.clock

    def get(self, call: Call) -> Done:
        """``{found, value}``; a step is its author's, so it reads sensitive values too."""
        key = call.fields["key"]
        return Done({"found": key in self._memory, "value": self._memory.get(key)})

    def set(self, call: Call) -> Done:
        """``{key}``."""
        fields: Mapping[str, Any] = call.fields
        until = None if fields["ttl"] is None else self._clock.now() + fields["ttl"]
        call.also += self._memory.expired()
        call.also.append(self._memory.set(fields["key"], fields["value"], sensitive=fields["sensitive"], until=until))
        return Done({"key": fields["key"]})

    def list(self, call: Call) -> Done:
        """The keys, in order."""
        return Done(self._memory.keys(call.fields["prefix"]))

    def delete(self, call: Call) -> Done:
        """``{deleted}``: whether there was anything."""
        key = call.fields["key"]
        there = key in self._memory
        call.also.append(self._memory.delete(key))
        return Done({"deleted": there})
