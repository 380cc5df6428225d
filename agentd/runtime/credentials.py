"""The credential schemes of this instance's targets: the model and the MCP servers; made when first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.errors import ConfigError
from agentd.ports.auth import OutboundRequest

if TYPE_CHECKING:
    from agentd.config.document import Auth as Options
    from agentd.config.document import Document
    from agentd.plugins import PluginSet
    from agentd.ports.auth import Auth
    from agentd.ports.host import Secrets

MODEL = "intelligence"


def server(name: str) -> str:
    """The target that the MCP server `name` is."""
    return f"mcp:{name}"


class Credentials:
    """One scheme object for each target, kept: a scheme may hold a token between requests."""

    def __init__(self, document: Document, plugins: PluginSet, secrets: Secrets) -> None:
        self._document, self._plugins, self._secrets = document, plugins, secrets
        self._made: dict[str, Auth | None] = {}

    def of(self, target: str) -> Auth | None:
        """The scheme of `target`, None where it has none. Raises ConfigError for one that is not installed."""
        if target not in self._made:
            options = self._options(target)
            self._made[target] = None if options is None else self._make(target, options)
        return self._made[target]

    def _options(self, target: str) -> Options | None:
        if target == MODEL:
            return self._document.intelligence.auth
        name = target.removeprefix("mcp:")
        return next((s.auth for s in self._document.mcp.servers if s.name == name), None)

    def _make(self, target: str, options: Options) -> Auth:
        spec = self._plugins.auth_schemes.get(options.kind)
        if spec is None:
            raise ConfigError(f"{target}: {self._plugins.missing('auth_schemes', options.kind)}")
        return spec.make(spec.options.model_validate(options.model_extra or {}), self._secrets)

    async def serve(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a child's `auth` frame: ``{headers, retry}`` for its target. Raises ConfigError, SecretMissing."""
        auth = self.of(str(frame["target"]))
        if auth is None:
            return {"headers": {}, "retry": False}
        request = OutboundRequest(
            method=str(frame.get("method", "")), url=str(frame.get("url", "")), headers=frame.get("headers") or {}
        )
        if frame.get("unauthorized"):
            return {"headers": {}, "retry": await auth.on_unauthorized(request, str(frame.get("challenge") or ""))}
        return {"headers": dict(await auth.headers(request)), "retry": False}


class Referred:
    """Headers that hold references, resolved at each request, so that a rotated secret file is picked up.

    `scheme` is the target's credential scheme beside them. Implements :class:`agentd.ports.auth.Auth`.
    """

    def __init__(self, headers: Mapping[str, str], secrets: Secrets, scheme: Auth | None) -> None:
        self._headers, self._secrets, self._scheme = headers, secrets, scheme

    async def headers(self, request: OutboundRequest) -> Mapping[str, str]:
        """The headers as they are now, and the scheme's. Raises SecretMissing."""
        own = {name: self._secrets.resolve(value) for name, value in self._headers.items()}
        return {**own, **(await self._scheme.headers(request) if self._scheme is not None else {})}

    async def on_unauthorized(self, request: OutboundRequest, challenge: str) -> bool:
        """Whether the scheme mended something, or a header changed meanwhile."""
        if self._scheme is not None and await self._scheme.on_unauthorized(request, challenge):
            return True
        sent = {name.lower(): value for name, value in request.headers.items()}
        return any(sent.get(name.lower()) != self._secrets.resolve(value) for name, value in self._headers.items())
