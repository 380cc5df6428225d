"""The declared MCP servers as the supervisor sees them: what each offers, and which may not be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentd.config.document import McpServer
from agentd.errors import ServerUnavailable
from agentd.ports.host import Log


class Servers:
    """What is known of each server. The catalogue a turn brought home is handed to later turns."""

    def __init__(self, declared: Sequence[McpServer], log: Log, *, all_needed: bool) -> None:
        """`all_needed`: a job, which cannot go on when every declared server is dead."""
        self._declared = {server.name: server for server in declared}
        self._log, self._all_needed = log, all_needed
        self._known: dict[str, dict[str, Any]] = {}

    def judge(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in what a turn found, log each server, and decide whether work can go on.

        Raises ServerUnavailable when a required server is dead, or all of several are and this is a job.
        """
        for name, entry in found.items():
            if entry.get("ok"):
                self._known[name] = dict(entry)
                tools = entry.get("tools") or ()
                self._log("mcp.connect", server=name, tools=len(tools), resources=entry.get("resources", False),
                          protocol=entry.get("protocol"))  # fmt: skip
            else:
                self._known.pop(name, None)
                self._log("mcp.connect.fail", level="warn", server=name, err=str(entry.get("err")))
        dead = [name for name, entry in found.items() if not entry.get("ok")]
        for name in dead:
            if self._declared[name].required:
                raise ServerUnavailable(f"the required MCP server {name} cannot be used: {found[name].get('err')}")
        if dead and len(dead) == len(self._declared) and self._all_needed:
            reasons = "; ".join(f"{name}: {found[name].get('err')}" for name in dead)
            raise ServerUnavailable(f"no declared MCP server can be used: {reasons}")

    def catalogue(self, names: Sequence[str]) -> dict[str, Any] | None:
        """What is known of `names`, None when one of them was not seen alive yet."""
        if not names or any(name not in self._known for name in names):
            return None
        return {name: self._known[name] for name in names}

    def with_resources(self) -> list[str]:
        """The servers that are known to offer resources."""
        return sorted(name for name, entry in self._known.items() if entry.get("resources"))
