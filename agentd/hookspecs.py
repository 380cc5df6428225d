"""THE seam: every hook of agentd, in one file.

A plugin is an installed distribution with an entry point in the group ``agentd.plugins`` whose object (a module will
do) implements some of these hooks. Hooks are synchronous: they declare, and return specs; what the specs open is
asynchronous and opened later. Selection is by `kind`; a kind that two plugins contribute is an error naming both.
There are no order tricks. A minimal plugin::

    from agentd.hookspecs import hookimpl

    @hookimpl
    def agentd_stores():
        return [StoreSpec(kind="redis", options=RedisOptions, open=open_redis)]

Plugin modules import only the standard library, pydantic and agentd at the top; SDKs are imported when something is
opened, which keeps ``agentd --validate-config`` fast with any number of plugins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from agentd.ports.auth import AuthSpec
    from agentd.ports.model import DialectSpec
    from agentd.ports.nodes import StartSpec, StepSpec
    from agentd.ports.schedule import ScheduleRuleSpec
    from agentd.ports.store import StoreSpec

hookspec = pluggy.HookspecMarker("agentd")
hookimpl = pluggy.HookimplMarker("agentd")


class Hooks:
    """The hooks, each called once per boot and reload, before any I/O."""

    @hookspec
    def agentd_stores(self) -> Iterable[StoreSpec]:
        """Contribute stores, chosen by `store.kind`; options are mounted at `store.<kind>`."""
        return ()

    @hookspec
    def agentd_dialects(self) -> Iterable[DialectSpec]:
        """Contribute model dialects, chosen by `intelligence.dialect`."""
        return ()

    @hookspec
    def agentd_auth_schemes(self) -> Iterable[AuthSpec]:
        """Contribute outbound authentication schemes, chosen by `auth.kind`."""
        return ()

    @hookspec
    def agentd_start_nodes(self) -> Iterable[StartSpec]:
        """Contribute kinds of start node."""
        return ()

    @hookspec
    def agentd_schedule_rules(self) -> Iterable[ScheduleRuleSpec]:
        """Contribute rules to the `schedule` start node (a field each)."""
        return ()

    @hookspec
    def agentd_step_nodes(self) -> Iterable[StepSpec]:
        """Contribute kinds of step."""
        return ()
