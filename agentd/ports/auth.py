"""Authenticating outward: one port for every scheme, with no HTTP library's class in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agentd.ports.host import Secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundRequest:
    """The request about to be sent, as far as a scheme may see it."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class Auth(Protocol):
    """One credential of one target. `headers` is asked before each request and must not cache a secret file."""

    async def headers(self, request: OutboundRequest) -> Mapping[str, str]:
        """Headers to add to `request`."""

    async def on_unauthorized(self, request: OutboundRequest, challenge: str) -> bool:
        """A 401 came with this `WWW-Authenticate`; True when a single retry may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSpec:
    """A scheme, chosen by `auth.kind` of a model endpoint or an MCP server."""

    kind: str
    options: type[BaseModel]
    make: Callable[[Any, Secrets], Auth]
