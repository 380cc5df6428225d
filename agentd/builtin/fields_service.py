"""Fields of the steps that call MCP servers and HTTP services."""

from typing import Any, Literal

from pydantic import Field

from agentd.ports.fields import Fields, Templated


class McpTool(Fields):
    server: str = Field(description="a declared server")
    tool: str = Field(description="the tool's own name there")
    args: Any = Field(default_factory=dict, description="its arguments")
    idempotency: bool | str = Field(True, description="false sends no key, a text is the key")


class McpResource(Fields):
    server: str = Field(description="a declared server")
    op: Literal["read", "list", "prompt", "complete"] = Field("read", description="what to ask")
    uri: str | None = Field(None, description="read: the resource")
    name: str | None = Field(None, description="prompt: its name")
    args: dict[str, Any] = Field(default_factory=dict, description="prompt: its arguments")
    ref: dict[str, Any] | None = Field(None, description="complete: what is completed")
    argument: dict[str, Any] | None = Field(None, description="complete: name and value so far")


class Tool(Fields):
    name: str = Field(description="a full tool name, internal or <server>.<tool>")
    args: Any = Field(default_factory=dict, description="its arguments")


class Http(Fields):
    url: str = Field(description="where to")
    method: Templated[Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]] = Field(
        "GET", description="how"
    )
    headers: dict[str, Any] = Field(default_factory=dict, description="further headers")
    query: dict[str, Any] = Field(default_factory=dict, description="query parameters")
    json_: Any = Field(None, alias="json", description="a JSON body")
    body: Any = Field(None, description="a text body")
    expect: Any = Field(None, description="the status, statuses or class (2xx) that is a success; else any under 400")
    allow_private: bool = Field(False, description="may dial an address that is not public")
    idempotency: bool | str = Field(False, description="send the key as Idempotency-Key, or as the named header")
