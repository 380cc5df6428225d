"""Find the plugins, register them, collect what they contribute, and know whom to blame.

:func:`load` is called once per boot and once per reload; its result, :class:`PluginSet`, is a value. The way of a
plugin: found in the metadata (:mod:`agentd.distributions`), admitted by `plugins.allow` and `plugins.disabled`,
imported by stevedore, checked against :mod:`agentd.hookspecs` by pluggy, its specs collected. Whatever goes wrong on
that way belongs to that plugin alone: it is listed with its reason, contributes nothing, and stops the boot only if
the configuration needs it, which :meth:`PluginSet.missing` then explains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from stevedore.named import NamedExtensionManager

from agentd import __version__
from agentd.builtin import LATE, MODULES
from agentd.contributions import SLOTS, Contribution, Key, Late, Specs, built_in, contribution
from agentd.distributions import GROUP, Found, find
from agentd.extras import EXTRAS
from agentd.quarantine import Quarantine, quarantine

if TYPE_CHECKING:
    from agentd.ports.auth import AuthSpec
    from agentd.ports.model import DialectSpec
    from agentd.ports.nodes import StartSpec, StepSpec
    from agentd.ports.schedule import ScheduleRuleSpec
    from agentd.ports.store import StoreSpec

__all__ = ["SLOTS", "Installed", "Key", "Origin", "PluginSet", "contribution", "load"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who contributed a kind: the plugin, its distribution and version. The kernel's own are of `agentd`."""

    plugin: str
    dist: str
    version: str

    def __str__(self) -> str:
        return "agentd itself" if self.dist == "agentd" else f"plugin {self.plugin} ({self.dist} {self.version})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One plugin that is installed and what became of it; `reason` says why it is not loaded."""

    name: str
    dist: str
    version: str
    value: str
    state: Literal["loaded", "failed", "disabled", "not allowed"]
    reason: str = ""
    kinds: tuple[Key, ...] = ()

    def __str__(self) -> str:
        return f"plugin {self.name} ({self.dist} {self.version}, entry point {self.name} = {self.value})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSet:
    """Everything that is contributed, by kind. A value: a reload builds another."""

    stores: Mapping[str, StoreSpec] = field(default_factory=dict)
    dialects: Mapping[str, DialectSpec] = field(default_factory=dict)
    auth_schemes: Mapping[str, AuthSpec] = field(default_factory=dict)
    start_nodes: Mapping[str, StartSpec] = field(default_factory=dict)
    step_nodes: Mapping[str, StepSpec] = field(default_factory=dict)
    schedule_rules: Mapping[str, ScheduleRuleSpec] = field(default_factory=dict)
    origins: Mapping[Key, Origin] = field(default_factory=dict)
    contested: Mapping[Key, tuple[Origin, ...]] = field(default_factory=dict)
    installed: tuple[Installed, ...] = ()

    @property
    def failed(self) -> tuple[Installed, ...]:
        """The plugins that are installed and admitted but cannot be used, with their reasons."""
        return tuple(p for p in self.installed if p.state == "failed")

    def missing(self, slot: str, kind: str) -> str:
        """Why `kind` is not in `slot` and what to do about it: one sentence for a finding.

        Names the two plugins that claim it, the plugin that is broken or switched off, or the command that installs
        it; for a kind nobody knows, the kinds there are and the broken plugins that may be the reason.
        """
        word = SLOTS[slot].word
        if owners := self.contested.get((slot, kind)):
            names = " and ".join(map(str, owners))
            return f"the {word} {kind!r} is contributed by {names}; switch one off in plugins.disabled"
        if known := EXTRAS.get((slot, kind)):
            for plugin in self.installed:
                if plugin.name == known.plugin:
                    return f"the {word} {kind!r} needs {plugin}, {_WHY[plugin.state]}{plugin.reason}"
            return f"the {word} {kind!r} is not installed: pip install 'agentd[{known.extra}]'"
        there = ", ".join(sorted(getattr(self, slot))) or "none"
        broken = "".join(f"; {p} failed to load: {p.reason}" for p in self.failed)
        return f"there is no {word} {kind!r}; installed: {there}{broken}"


_WHY = {
    "loaded": "whose installed version does not contribute it",
    "failed": "which failed to load: ",
    "disabled": "which plugins.disabled switches off",
    "not allowed": "which plugins.allow does not name",
}


def load(allow: Collection[str] | None = None, disabled: Collection[str] = ()) -> PluginSet:
    """Load the built-in and the installed plugins; `allow` None admits all that `disabled` does not name.

    Never raises for a plugin's fault. What one prints meanwhile, and that one is slow, is told on stderr.
    """
    collected = [(Origin(name.rpartition(".")[2], "agentd", __version__), _own(name)) for name in MODULES]
    reserved = {key: origin for origin, specs in collected for key in specs}
    installed: list[Installed] = []
    with quarantine() as inside:
        admitted: list[Installed] = []
        for found in find():
            verdict = _judge(found, allow, disabled)
            (admitted if verdict.state == "loaded" else installed).append(verdict)
        for plugin, outcome in _import(admitted, inside):
            specs = outcome if isinstance(outcome, str) else _collect(outcome, reserved)
            if isinstance(specs, str):
                installed.append(replace(plugin, state="failed", reason=specs))
            else:
                installed.append(replace(plugin, kinds=tuple(specs)))
                collected.append((Origin(plugin.name, plugin.dist, plugin.version), specs))
    return _assemble(collected, sorted(installed, key=lambda p: (p.name, p.dist)))


def _own(module: str) -> Contribution:
    """What a module of the kernel contributes, if need be without importing it."""
    late = {key: Late(module, key) for key, where in LATE.items() if where == module}
    return dict(late) or built_in(module)


def _judge(found: Found, allow: Collection[str] | None, disabled: Collection[str]) -> Installed:
    """What the configuration and the metadata say of a plugin, before anything of it is imported."""
    plugin = Installed(name=found.name, dist=found.dist, version=found.version, value=found.value, state="loaded")
    if found.name in disabled:
        return replace(plugin, state="disabled")
    if allow is not None and found.name not in allow:
        return replace(plugin, state="not allowed")
    return replace(plugin, state="failed", reason=found.flaw) if found.flaw else plugin


class _Point(EntryPoint):
    """An entry point whose failure is always an ImportError: stevedore lets the exits of a process through."""

    def load(self) -> Any:
        try:
            return super().load()
        except ModuleNotFoundError as error:
            if error.name and (self.module + ".").startswith(error.name + "."):
                raise ImportError(f"its module {error.name} does not exist (a stale install?); reinstall it") from error
            raise
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            raise ImportError(_told(error)) from error


class _Manager(NamedExtensionManager[Any]):
    """Stevedore's manager over what we found ourselves.

    Its own search goes through a cache in the home directory that anybody who can write there may point at other
    code, forgets the distribution, and fails as a whole when one distribution is broken.
    """

    def __init__(self, plugin: Installed) -> None:
        self._points: list[EntryPoint] = [_Point(plugin.name, plugin.value, GROUP)]
        super().__init__(
            GROUP, [plugin.name], on_load_failure_callback=_raise, on_missing_entrypoints_callback=lambda _: None
        )

    def list_entry_points(self) -> list[EntryPoint]:
        return self._points


def _raise(_manager: object, _point: EntryPoint, error: BaseException) -> None:
    """Left unset, stevedore logs and carries on."""
    raise error


def _import(plugins: Sequence[Installed], inside: Quarantine) -> Iterator[tuple[Installed, object]]:
    """Each plugin with its object, or with the reason (a str) why there is none."""
    for plugin in plugins:
        inside.turn_to(str(plugin))
        try:
            yield plugin, _Manager(plugin)[plugin.name].plugin
        except Exception as error:
            yield plugin, _told(error)


def _collect(plugin: object, reserved: Mapping[Key, Origin]) -> Contribution | str:
    """The contribution of an installed plugin, or why it is refused as a whole."""
    try:
        specs = contribution(plugin)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return _told(error)
    for slot, kind in specs:
        if owner := reserved.get((slot, kind)):
            return f"it contributes the {SLOTS[slot].word} {kind!r}, which belongs to {owner}"
    return specs


def _told(error: BaseException) -> str:
    """An exception in one line; an ImportError of ours speaks for itself."""
    text = " ".join(str(error).split())[:400]
    return text if isinstance(error, ImportError) and text else f"{type(error).__name__}: {text}"


def _assemble(collected: Sequence[tuple[Origin, Contribution]], installed: Sequence[Installed]) -> PluginSet:
    """Merge by kind. A kind that two plugins contribute is in neither's name: it is contested."""
    owners: dict[Key, list[tuple[Origin, Any]]] = {}
    for origin, specs in collected:
        for key, spec in specs.items():
            owners.setdefault(key, []).append((origin, spec))
    slots: dict[str, dict[str, Any]] = {slot: {} for slot in SLOTS}
    for (slot, kind), claims in owners.items():
        if len(claims) == 1:
            slots[slot][kind] = claims[0][1]
    return PluginSet(
        **{slot: Specs(kinds) for slot, kinds in slots.items()},
        origins=MappingProxyType({key: claims[0][0] for key, claims in owners.items() if len(claims) == 1}),
        contested=MappingProxyType({k: tuple(o for o, _ in c) for k, c in owners.items() if len(c) > 1}),
        installed=tuple(installed),
    )
