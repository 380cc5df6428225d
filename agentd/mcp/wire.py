"""One life of a connection: the SDK's session on our HTTP client, with the SDK's judgement of answers left out.

The SDK validates an answer as a whole: one malformed tool would cost the listing, a missing `structuredContent` the
call. So the dispatcher takes each answer away before that (:class:`Taken`), and :mod:`~agentd.mcp.catalogue` and
:mod:`~agentd.mcp.results` judge it. Only the handshake stays the SDK's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

import agentd
from agentd.mcp.faults import fault_of, is_unreachable, modern_version
from agentd.mcp.http import SoftClient
from agentd.mcp.records import Connected, Elicit, Json, McpFault

MAX_EVENT = 16 << 20
"""Bytes of one event of a stream."""
PROBE_TIMEOUT = 2.0
"""Seconds a server has to say that it does not know `server/discover`; silence counts as not knowing it."""
_HANDSHAKE = ("initialize", "server/discover", "ping")
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class Taken(Exception):
    """Carries an answer past the SDK's validation."""

    def __init__(self, answer: Json) -> None:
        super().__init__("taken")
        self.answer = answer


class Dispatcher(JSONRPCDispatcher[TransportContext]):
    """Hands each answer over unread; mirrors annotated arguments into headers, which the SDK does from listings."""

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.header_maps: dict[str, dict[tuple[str, ...], str]] = {}

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **kw: Any
    ) -> Json:
        if method in _HANDSHAKE:
            return await super().send_raw_request(method, params, opts, **kw)
        if method == "tools/call" and params and opts and (header_map := self.header_maps.get(params["name"])):
            opts["headers"] = {
                **opts.get("headers", {}),
                **mcp_param_headers(header_map, params.get("arguments") or {}),
            }
        raise Taken(await super().send_raw_request(method, params, opts, **kw))


class Wire:
    """An open connection: asks in the SDK's words and answers in plain JSON."""

    def __init__(self, server: str, session: ClientSession, dispatcher: Dispatcher, http: SoftClient) -> None:
        self.server, self.http = server, http
        self._session, self._dispatcher = session, dispatcher

    @property
    def protocol(self) -> str:
        """The negotiated revision."""
        return self._session.protocol_version or ""

    @property
    def stateless(self) -> bool:
        """Whether it is of the family without sessions (2026-07-28)."""
        return self.protocol in MODERN_PROTOCOL_VERSIONS

    @property
    def capabilities(self) -> Json:
        """What the server advertises, by wire names."""
        found = self._session.server_capabilities
        return found.model_dump(by_alias=True, exclude_none=True) if found else {}

    @property
    def instructions(self) -> str:
        """The server's words to a model, if any."""
        return self._session.instructions or ""

    def presume(self, known: Connected) -> bool:
        """Whether `known` spares the greeting: a server without sessions is simply asked."""
        if known.protocol not in MODERN_PROTOCOL_VERSIONS:
            return False
        self._session.adopt(
            types.DiscoverResult(
                supported_versions=[known.protocol],
                capabilities=types.ServerCapabilities(),
                result_type="complete",
                ttl_ms=0,
                cache_scope="private",
            )
        )
        self.mirror([{"name": tool.name, "inputSchema": tool.schema} for tool in known.tools])
        return True

    async def greet(self, known: str | None) -> None:
        """Agree on a revision; `known` is the one of the last time. Raises :class:`McpFault`."""
        try:
            asked = known is None or known in MODERN_PROTOCOL_VERSIONS
            if not (asked and await self._discover(LATEST_MODERN_VERSION)):
                await self._session.initialize()
        except MCPError as e:
            raise fault_of(self.server, e.code, e.message, e.data) from e
        except (RuntimeError, ValidationError) as e:
            raise McpFault(f"MCP server {self.server!r} does not speak MCP: {str(e).splitlines()[0]}") from e

    async def _discover(self, version: str) -> bool:
        """True when the server took a stateless revision, False when `initialize` is what it wants."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                answer = types.DiscoverResult.model_validate(await self._session.send_discover(version))
        except (TimeoutError, ValidationError):
            return False
        except MCPError as e:
            if is_unreachable(e.data):
                raise
            other = modern_version(e.code, e.data, MODERN_PROTOCOL_VERSIONS)
            return bool(other) and other != version and await self._discover(other)
        if not any(v in MODERN_PROTOCOL_VERSIONS for v in answer.supported_versions):
            return False
        self._session.adopt(answer)
        return True

    def mirror(self, tools: list[Json]) -> dict[str, str]:
        """Note which arguments of `tools` (as listed) go into headers; names the tools that ask it wrongly, and why."""
        bad: dict[str, str] = {}
        if not self.stateless:
            return bad
        for tool in tools:
            schema = tool.get("inputSchema")
            if not isinstance(schema, dict) or not isinstance(tool.get("name"), str):
                continue
            if (reason := find_invalid_x_mcp_header(schema)) is not None:
                bad[tool["name"]] = f"invalid x-mcp-header: {reason}"
            elif header_map := x_mcp_header_map(schema):
                self._dispatcher.header_maps[tool["name"]] = header_map
        return bad

    async def list_page(self, kind: str, cursor: str | None, timeout: float) -> Json:
        """One page of `kind`: tools, resources, templates or prompts."""
        kinds: dict[str, type[types.Request[Any, Any]]] = {
            "tools": types.ListToolsRequest,
            "resources": types.ListResourcesRequest,
            "templates": types.ListResourceTemplatesRequest,
            "prompts": types.ListPromptsRequest,
        }
        page = kinds[kind].model_validate({"params": {"cursor": cursor}})
        return await self._ask(page, timeout)

    async def call_tool(self, name: str, args: Json, meta: Json, timeout: float, **answers: Any) -> Json:
        """`tools/call`; `answers` are `input_responses` and `request_state` of a further round."""
        params = types.CallToolRequestParams.model_validate(
            {"name": name, "arguments": args, "_meta": meta, **answers}, by_name=True, by_alias=True
        )
        return await self._ask(types.CallToolRequest(params=params), timeout)

    async def read_resource(self, uri: str, meta: Json, timeout: float) -> Json:
        """`resources/read`."""
        params = types.ReadResourceRequestParams.model_validate({"uri": uri, "_meta": meta})
        return await self._ask(types.ReadResourceRequest(params=params), timeout)

    async def get_prompt(self, name: str, args: Mapping[str, str], timeout: float) -> Json:
        """`prompts/get`."""
        params = types.GetPromptRequestParams(name=name, arguments=dict(args))
        return await self._ask(types.GetPromptRequest(params=params), timeout)

    async def complete(
        self, ref: Json, argument: Mapping[str, str], context: Mapping[str, str], timeout: float
    ) -> Json:
        """`completion/complete`; `ref` is a prompt's or a template's reference by wire names."""
        params = types.CompleteRequestParams.model_validate(
            {"ref": ref, "argument": dict(argument), **({"context": {"arguments": dict(context)}} if context else {})}
        )
        return await self._ask(types.CompleteRequest(params=params), timeout)

    async def _ask(self, request: types.Request[Any, Any], timeout: float) -> Json:
        try:
            async with asyncio.timeout(timeout + 1):  # the SDK's clock starts only when the request was written
                await self._session.send_request(request, _ANYTHING, request_read_timeout_seconds=timeout)
        except Taken as taken:
            return taken.answer
        except MCPError as e:
            raise fault_of(self.server, e.code, e.message, e.data) from None
        except TimeoutError:
            raise fault_of(self.server, 0, f"no answer within {timeout:g} s", {"fault": "Timeout"}) from None
        raise AssertionError("the dispatcher takes every answer")  # pragma: no cover


@asynccontextmanager
async def dial(server: str, endpoint: str, http: SoftClient, *, elicit: Elicit | None = None) -> AsyncIterator[Wire]:
    """A connection that has not yet greeted. No capability is declared but elicitation, and that only with `elicit`."""

    async def ask_person(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert elicit is not None
        answer = await elicit(server, params.model_dump(by_alias=True, mode="json", exclude_none=True))
        return types.ElicitResult.model_validate(answer)

    async with http, streamable_http_client(endpoint, http_client=http, max_sse_event_size=MAX_EVENT) as streams:
        dispatcher = Dispatcher(*streams)
        session = ClientSession(
            dispatcher=dispatcher,
            client_info=types.Implementation(name="agentd", version=agentd.__version__),
            elicitation_callback=ask_person if elicit else None,
        )
        async with session:
            yield Wire(server, session, dispatcher, http)
