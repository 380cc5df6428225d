"""What plugins contribute: the slots there are, one plugin's share of them, and the mapping from a kind to its spec."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import pluggy

from agentd.hookspecs import Hooks

S = TypeVar("S")


class Slot(NamedTuple):
    """What a hook contributes: where the type of its specs is, the attribute that names one, the word for people."""

    spec: str
    key: str
    word: str

    @property
    def type(self) -> type[Any]:
        """The type of its specs; imported only when somebody contributes one."""
        module, _, name = self.spec.partition(":")
        found: type[Any] = getattr(importlib.import_module(module), name)
        return found


SLOTS: Mapping[str, Slot] = MappingProxyType(
    {
        "stores": Slot("agentd.ports.store:StoreSpec", "kind", "store"),
        "dialects": Slot("agentd.ports.model:DialectSpec", "kind", "dialect"),
        "auth_schemes": Slot("agentd.ports.auth:AuthSpec", "kind", "auth scheme"),
        "start_nodes": Slot("agentd.ports.nodes:StartSpec", "kind", "start node"),
        "step_nodes": Slot("agentd.ports.nodes:StepSpec", "kind", "step"),
        "schedule_rules": Slot("agentd.ports.schedule:ScheduleRuleSpec", "field", "schedule rule"),
    }
)
"""Hook name without ``agentd_`` to its slot; the attributes of :class:`agentd.plugins.PluginSet` have these names."""

Key = tuple[str, str]
"""``(slot, kind)``, for example ``("stores", "file")``."""

Contribution = dict[Key, Any]


def contribution(plugin: object) -> Contribution:
    """What one plugin object (a module will do) contributes. Raises whatever is wrong with it.

    A manager of its own for each plugin: pluggy then checks and calls this one alone, so every error has an owner.
    """
    manager = pluggy.PluginManager("agentd")
    manager.add_hookspecs(Hooks)
    manager.register(plugin)
    manager.check_pending()
    callers = manager.get_hookcallers(plugin) or []
    if not callers:
        raise TypeError("it implements no hook of agentd; decorate functions with agentd.hookspecs.hookimpl")
    specs: Contribution = {}
    for caller in callers:
        slot = caller.name.removeprefix("agentd_")
        for result in caller():
            for spec in result:
                key = (slot, _kind(caller.name, SLOTS[slot], spec))
                if key in specs:
                    raise ValueError(f"it contributes the {SLOTS[slot].word} {key[1]!r} twice")
                specs[key] = spec
    return specs


@cache
def built_in(module: str) -> Contribution:
    """What a module of the kernel contributes."""
    return contribution(importlib.import_module(module))


def _kind(hook: str, slot: Slot, spec: object) -> str:
    if not isinstance(spec, slot.type):
        raise TypeError(f"{hook} gave {type(spec).__name__}, it must give {slot.type.__name__}")
    kind = getattr(spec, slot.key)
    if not isinstance(kind, str) or not kind:
        raise TypeError(f"{hook} gave a {slot.type.__name__} whose {slot.key} is no word")
    return kind


class Late(NamedTuple):
    """A kind of the kernel's whose module is imported at its first use."""

    module: str
    key: Key


class Specs(Mapping[str, S]):
    """Kinds and their specs, read only; asking which kinds there are imports nothing."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, S | Late]) -> None:
        self._held = dict(held)

    def __getitem__(self, kind: str) -> S:
        spec = self._held[kind]
        if isinstance(spec, Late):
            self._held[kind] = spec = built_in(spec.module)[spec.key]
        return spec

    def __contains__(self, kind: object) -> bool:
        return kind in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)
