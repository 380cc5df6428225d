"""The `static` scheme: a bearer token, or a header with a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agentd.hookspecs import hookimpl
from agentd.ports.auth import AuthSpec, OutboundRequest

if TYPE_CHECKING:
    from agentd.ports.host import Secrets

SECRET: dict[str, Any] = {"secret": True}


class StaticOptions(BaseModel):
    """Either `token`, or `header` and `value`; in a file credentials are references."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)

    token: str | None = Field(None, description="sent as a bearer token", json_schema_extra=SECRET, repr=False)
    header: str | None = Field(None, description="the header to send instead", pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
    value: str | None = Field(None, description="that header's value", json_schema_extra=SECRET, repr=False)

    @model_validator(mode="after")
    def _one_form(self) -> StaticOptions:
        by_header = self.header is not None and self.value is not None
        if by_header == (self.token is not None) or (self.header is None) != (self.value is None):
            raise ValueError("give either token, or header and value")
        return self


@hookimpl
def agentd_auth_schemes() -> Iterable[AuthSpec]:
    return [AuthSpec(kind="static", options=StaticOptions, make=StaticAuth)]


class StaticAuth:
    """Resolves its references at each request, so that a rotated secret file is picked up."""

    def __init__(self, options: StaticOptions, secrets: Secrets) -> None:
        self._options, self._secrets = options, secrets

    async def headers(self, request: OutboundRequest) -> Mapping[str, str]:
        options = self._options
        if options.token is not None:
            return {"Authorization": f"Bearer {self._secrets.resolve(options.token)}"}
        assert options.header is not None and options.value is not None
        return {options.header: self._secrets.resolve(options.value)}

    async def on_unauthorized(self, request: OutboundRequest, challenge: str) -> bool:
        return False
