"""The internal tools that the supervisor serves: to turns over `tool` frames, and to `tool` steps.

What a turn sees depends on what there is: memory and artifacts where state is durable, `workflow.run` where a workflow
waits to be started by hand, `resource.read` where a server is known to have resources. Sensitive values are never
given to a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agentd.engine.schemas import malformed
from agentd.errors import AgentdError
from agentd.journal import artifacts
from agentd.runtime.steps.workflow import MAX_DEPTH

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call

Tool = Callable[[Mapping[str, Any], "Call", str], Awaitable[Any]]
"""``(args, call, key) -> value``; `key` is the same for each repetition of the same call."""

_TEXT = {"type": "string"}


class ToolRefused(AgentdError):
    """A tool says no, in words for the model."""

    code = "tool"


class Internal:
    """Each tool is a method; the table says how the model sees it."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._artifacts = artifacts.Artifacts(instance.journal)
        self._tools: dict[str, tuple[Tool, str, dict[str, Any], list[str]]] = {
            "memory.get": (self._get, "Read a value of the durable memory.", {"key": _TEXT}, ["key"]),
            "memory.set": (
                self._set, "Keep a value in the durable memory, which later runs can read.",
                {"key": _TEXT, "value": {}, "ttl_seconds": {"type": "number", "exclusiveMinimum": 0}}, ["key", "value"],
            ),
            "memory.list": (self._list, "List the keys of the durable memory.", {"prefix": _TEXT}, []),
            "memory.delete": (self._delete, "Remove a value of the durable memory.", {"key": _TEXT}, ["key"]),
            "artifact.create": (
                self._create, "Keep a document beside the run; its id is the answer.",
                {"content": {}, "name": _TEXT, "media_type": _TEXT}, ["content"],
            ),
            "artifact.get": (self._read, "Read a document that was kept.", {"id": _TEXT}, ["id"]),
            "artifact.delete": (self._remove, "Remove a document that was kept.", {"id": _TEXT}, ["id"]),
            "workflow.run": (
                self._run, "Start a workflow. With `wait` the answer comes with its end, else at once.",
                {"name": _TEXT, "inputs": {"type": "object"}, "wait": {"type": "boolean"}}, ["name"],
            ),
            "workflow.signal": (
                self._signal, "Send a named signal, to one run or to whoever waits for it.",
                {"name": _TEXT, "run": _TEXT, "payload": {}}, ["name"],
            ),
            "workflow.status": (self._status, "How a run stands.", {"run": _TEXT}, ["run"]),
            "ask_human": (
                self._ask, "Ask a person and wait for the answer. Give a JSON Schema for an answer of a certain form.",
                {"question": _TEXT, "schema": {"type": "object"}, "to": _TEXT}, ["question"],
            ),
            "resource.read": (
                self._resource, "Read a resource of an MCP server.", {"server": _TEXT, "uri": _TEXT}, ["server", "uri"]
            ),
        }  # fmt: skip

    @property
    def reachable(self) -> bool:
        """Whether a person can be asked."""
        return self._instance.operations.reachable

    def has(self, name: str) -> bool:
        """Whether there is a tool of this name."""
        return name in self._tools

    def offered(self, globs: Sequence[str]) -> list[dict[str, Any]]:
        """The tools that `globs` admit and that have something to work on, as the `work` frame carries them."""
        there = self._there()
        return [
            {"name": name, "description": help,
             "parameters": {"type": "object", "properties": self._shape(name, properties), "required": required}}
            for name, (_, help, properties, required) in self._tools.items()
            if name.partition(".")[0] in there and self.allowed(name, globs)
        ]  # fmt: skip

    def allowed(self, name: str, globs: Sequence[str]) -> bool:
        """Whether `globs` admit the tool and nothing disables it."""
        disabled = self._instance.document.tools.disabled
        return any(fnmatchcase(name, g) for g in globs) and not any(fnmatchcase(name, g) for g in disabled)

    def _there(self) -> set[str]:
        instance = self._instance
        there = {"memory", "artifact"} if instance.store_spec.durable else set()
        if self._startable():
            there.add("workflow")
        if self.reachable:
            there.add("ask_human")
        if instance.servers.with_resources():
            there.add("resource")
        return there

    def _startable(self) -> list[str]:
        plans = self._instance.definitions.current.values()
        return sorted(p.name for p in plans if any(node.kind == "manual" for node in p.starts.values()))

    def _shape(self, name: str, properties: dict[str, Any]) -> dict[str, Any]:
        if name == "workflow.run":
            return {**properties, "name": {**_TEXT, "enum": self._startable()}}
        if name == "resource.read":
            return {**properties, "server": {**_TEXT, "enum": self._instance.servers.with_resources()}}
        return properties

    async def call(self, name: str, args: Any, call: Call, key: str = "") -> tuple[Any, bool]:
        """Serve one call; its value and whether that is an error."""
        tool, _, properties, required = self._tools[name]
        if not isinstance(args, Mapping):
            return f"the arguments of {name} are no object", True
        if lacking := [word for word in required if word not in args]:
            return f"{name} needs {', '.join(lacking)}", True
        if unknown := [word for word in args if word not in properties]:
            return f"{name} has no argument {', '.join(unknown)}; it has: {', '.join(properties)}", True
        if wrong := [w for w in args if properties[w] is _TEXT and not isinstance(args[w], str)]:
            return f"{name}: {', '.join(wrong)} must be text", True
        try:
            return await tool(args, call, key or call.key), False
        except AgentdError as error:
            return error.message, True

    # --- memory and artifacts ------------------------------------------------------------------------------------

    async def _get(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        memory = self._instance.memory
        self._not_secret(args["key"])
        return {"found": args["key"] in memory, "value": memory.get(args["key"])}

    async def _set(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        ttl = args.get("ttl_seconds")
        if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl <= 0):
            raise ToolRefused("ttl_seconds is a number above 0")
        self._not_secret(args["key"])
        until = None if ttl is None else self._instance.clock.now() + ttl
        await self._instance.journal.write([self._instance.memory.set(args["key"], args["value"], until=until)])
        return {"key": args["key"]}

    async def _list(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        return self._instance.memory.keys(args.get("prefix", ""), sensitive=False)

    async def _delete(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        self._not_secret(args["key"])
        there = args["key"] in self._instance.memory
        await self._instance.journal.write([self._instance.memory.delete(args["key"])])
        return {"deleted": there}

    def _not_secret(self, key: str) -> None:
        if self._instance.memory.is_sensitive(key):
            raise ToolRefused(f"{key} is sensitive: only steps of a workflow may use it")

    async def _create(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        ref, (kind, id, state) = artifacts.make(call.run_id, call.step_id, args["content"])
        assert state is not None
        about = {word: args[word] for word in ("name", "media_type") if word in args}
        await self._instance.journal.write([(kind, id, {**state, **about})])
        return {"id": id, "size": ref["size"]}

    async def _read(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        found = await self._artifact(args["id"])
        return {"found": found is not None, "content": None if found is None else found["value"]}

    async def _remove(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        await self._artifact(args["id"])
        await self._artifacts.delete(args["id"])
        return {"id": args["id"]}

    async def _artifact(self, id: str) -> dict[str, Any] | None:
        found = await self._artifacts.get(id)
        if found is not None and found.get("sensitive"):
            raise ToolRefused(f"{id} is sensitive: only steps of a workflow may use it")
        return found

    # --- runs ----------------------------------------------------------------------------------------------------

    async def _run(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        instance, name = self._instance, args["name"]
        if name not in self._startable():
            raise ToolRefused(f"there is no workflow {name} to start; there are: {', '.join(self._startable())}")
        inputs = args.get("inputs", {})
        if not isinstance(inputs, Mapping):
            raise ToolRefused("inputs must be an object")
        depth = int((call.live.record.get("parent") or {}).get("depth", 0)) + 1
        if depth > MAX_DEPTH:
            raise ToolRefused(f"workflows started one another {MAX_DEPTH} deep")
        plan = instance.definitions.current[name]
        node = next(node for node in plan.starts.values() if node.kind == "manual")
        parent = {"run": call.run_id, "step": call.step_id, "depth": str(depth), "cascade": "async"}
        run = await instance.triggers.manual(plan, node, inputs, key=f"{name}/{key}", parent=parent)
        instance.steps.nested.started(run, parent)
        if args.get("wait") is not True:
            return {"run": run, "workflow": name}
        end = await instance.operations.end(run)
        return {"run": run, "status": end["status"], "output": end["output"], "error": end["err"]}

    async def _signal(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        taken = await self._instance.signals.send(
            args["name"], args.get("payload"), sender=call.run_id, run=args.get("run")
        )
        return {"woken": taken.woken, "started": taken.started, "kept": taken.kept}

    async def _status(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        return await self._instance.operations.status(args["run"])

    async def _ask(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        schema = args.get("schema")
        if schema is not None and (problem := malformed(schema)):
            raise ToolRefused(f"schema is {problem}")
        return await self._instance.waits.gates.ask(call, key, args["question"], schema, args.get("to"))

    async def elicit(self, server: str, params: Mapping[str, Any], call: Call) -> dict[str, Any]:
        """A question of an MCP server, in the words of the protocol: ``{action, content?}``.

        The same question of the same step is one gate: it is answered again when a replayed call asks it again.
        """
        question, schema = str(params.get("message") or "?"), params.get("requestedSchema")
        words = json.dumps([call.key, server, question, schema], sort_keys=True)
        key = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
        nullable = None if not isinstance(schema, dict) or malformed(schema) else {"anyOf": [schema, {"type": "null"}]}
        answer = await self._instance.waits.gates.ask(call, key, f"{server} asks: {question}", nullable)
        return {"action": "decline"} if answer is None else {"action": "accept", "content": answer}

    async def _resource(self, args: Mapping[str, Any], call: Call, key: str) -> Any:
        from agentd.runtime.steps.mcp import content_of

        if not any(server.name == args["server"] for server in self._instance.document.mcp.servers):
            raise ToolRefused(f"there is no MCP server {args['server']}")
        connections = await self._instance.connections.use()
        return content_of(args["uri"], await connections.read_resource(args["server"], args["uri"]))
