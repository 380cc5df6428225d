"""`mcp.tool`, `mcp.resource` and `tool`: the supervisor calls a server by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Done, Failed, Outcome
from agentd.mcp.meta import call_meta
from agentd.mcp.records import McpFault
from agentd.mcp.results import parse_text
from agentd.runtime.steps.references import resolved

if TYPE_CHECKING:
    from agentd.config.document import McpServer
    from agentd.mcp.connections import Connections
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call
    from agentd.runtime.runs import Performer


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kinds of this family."""
    steps = McpSteps(instance)
    return {"mcp.tool": steps.call_tool, "mcp.resource": steps.resource, "tool": steps.by_name}


class McpSteps:
    """Calls over the supervisor's connections. A tool's own error is a failed step, a dead server costs its steps."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def call_tool(self, call: Call) -> Outcome:
        """`mcp.tool`: the tool's value."""
        fields = resolved(call)
        return await self._call(call, fields["server"], fields["tool"], fields["args"], fields["idempotency"])

    async def by_name(self, call: Call) -> Outcome:
        """`tool`: an internal tool, or one of a server by its full name; overrides apply."""
        fields, tools = resolved(call), self._instance.document.tools
        name = fields["name"]
        if name in tools.overrides:
            target = tools.overrides[name]
            if target is None:
                return _wrong(f"the tool {name} is removed by tools.overrides")
            name = target
        if self._instance.steps.internal.has(name):
            if self._disabled(name):
                return _wrong(f"the tool {name} is disabled by tools.disabled")
            value, is_error = await self._instance.steps.internal.call(name, fields["args"], call)
            return Failed("tool", str(value)) if is_error else Done(value)
        for server in sorted(self._servers, key=lambda s: -len(s.ns or s.name)):
            prefix = f"{server.ns or server.name}."
            if name.startswith(prefix):
                return await self._call(call, server.name, name.removeprefix(prefix), fields["args"], True)
        return _wrong(f"there is no tool {name}: expected an internal tool or <server>.<tool>")

    async def _call(self, call: Call, server: str, tool: str, args: Any, idempotency: bool | str) -> Outcome:
        declared = self._declared(server)
        if isinstance(declared, Failed):
            return declared
        full = f"{declared.ns or declared.name}.{tool}"
        if self._disabled(full):
            return _wrong(f"the tool {full} is disabled by tools.disabled")
        if not isinstance(args, Mapping):
            return _wrong(f"args of {full} is no object")
        connections = await self._instance.connections.use()
        meta = self._meta(call, idempotency)
        call.log("tool.call", server=server, tool=tool, call_id=call.step_id)
        began = time.monotonic()
        try:
            result = await connections.call(server, tool, args, meta=meta, timeout=call.effect.timeout)
        except McpFault as fault:
            self._result(call, server, tool, began, is_error=True, bytes=0)
            return Failed(fault.code, fault.message, retry=fault.retry)
        size = len(result.text.encode("utf-8", "surrogatepass"))
        self._result(call, server, tool, began, is_error=result.is_error, bytes=size)
        if result.is_error:
            return Failed("tool", f"{full}: {result.text}")
        return Done(result.value)

    def _result(self, call: Call, server: str, tool: str, began: float, **fields: Any) -> None:
        took = round((time.monotonic() - began) * 1000)
        call.log("tool.result", server=server, tool=tool, call_id=call.step_id, dur_ms=took, **fields)

    async def resource(self, call: Call) -> Outcome:
        """`mcp.resource`: read ``{uri, mime_type, content}``, list and complete an array, prompt ``{messages, …}``."""
        fields = resolved(call)
        declared = self._declared(fields["server"])
        if isinstance(declared, Failed):
            return declared
        need = {"read": "uri", "prompt": "name", "complete": "ref"}.get(fields["op"])
        if need is not None and not fields[need]:
            return _wrong(f"op {fields['op']} needs {need}")
        connections = await self._instance.connections.use()
        try:
            return Done(await self._ask(connections, fields, call.effect.timeout, self._meta(call, True)))
        except McpFault as fault:
            return Failed(fault.code, fault.message, retry=fault.retry)

    async def _ask(
        self, connections: Connections, fields: Mapping[str, Any], timeout: float | None, meta: dict[str, Any]
    ) -> Any:
        server = fields["server"]
        if fields["op"] == "list":
            return await connections.list_resources(server, timeout)
        if fields["op"] == "prompt":
            args = {name: value if isinstance(value, str) else str(value) for name, value in fields["args"].items()}
            return await connections.get_prompt(server, fields["name"], args, timeout=timeout)
        if fields["op"] == "complete":
            return await connections.complete(server, fields["ref"], fields["argument"] or {}, timeout=timeout)
        return content_of(
            fields["uri"], await connections.read_resource(server, fields["uri"], meta=meta, timeout=timeout)
        )

    def _meta(self, call: Call, idempotency: bool | str) -> dict[str, Any]:
        key = idempotency if isinstance(idempotency, str) else call.key
        trace = call.log.trace
        meta = call_meta(
            run_id=call.run_id, instance=self._instance.name, key=key, attempt=call.attempt,
            traceparent=None if trace is None else trace.traceparent,
        )  # fmt: skip
        if idempotency is False:
            del meta["agent/idempotency_key"]
        return meta

    @property
    def _servers(self) -> list[McpServer]:
        return self._instance.document.mcp.servers

    def _declared(self, name: str) -> McpServer | Failed:
        found = next((server for server in self._servers if server.name == name), None)
        if found is not None:
            return found
        known = ", ".join(sorted(server.name for server in self._servers)) or "none"
        return _wrong(f"there is no MCP server {name!r}; declared: {known}")

    def _disabled(self, full: str) -> bool:
        return any(fnmatchcase(full, glob) for glob in self._instance.document.tools.disabled)


def content_of(uri: str, contents: list[dict[str, Any]]) -> dict[str, Any]:
    """What a resource holds: ``{uri, mime_type, content}``, where JSON is parsed and what is no text is base64 in
    `blob`; a resource of several parts has them all in `contents`.
    """
    parts = [_part(part) for part in contents]
    found: dict[str, Any] = {"uri": uri, **(parts[0] if parts else {"mime_type": None, "content": None})}
    if len(parts) > 1:
        found["contents"] = parts
    return found


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"mime_type": part.get("mimeType"), "content": None}
    if isinstance(text := part.get("text"), str):
        value, parsed = parse_text(text)
        told["content"] = value if parsed else text
    elif "blob" in part:
        told["blob"] = part["blob"]
    return told


def _wrong(message: str) -> Failed:
    return Failed("step", message, retry=False)
