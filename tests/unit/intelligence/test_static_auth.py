"""The static scheme."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from agentd.builtin.static_auth import StaticOptions, agentd_auth_schemes
from agentd.ports.auth import OutboundRequest

REQUEST = OutboundRequest(method="POST", url="https://x", headers={})


class Rotating:
    """Secrets that are another value at each look."""

    looks = 0

    def resolve(self, text: str) -> str:
        self.looks += 1
        return text.replace("{{secret:K}}", f"v{self.looks}")


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({"token": "{{secret:K}}"}, "Authorization", "Bearer v{}"),
        ({"header": "X-Api-Key", "value": "{{secret:K}}"}, "X-Api-Key", "v{}"),
    ],
)
def test_references_are_resolved_at_each_request(options: dict[str, str], name: str, value: str) -> None:
    (spec,) = agentd_auth_schemes()
    auth = spec.make(spec.options.model_validate(options), Rotating())
    for look in (1, 2):
        assert asyncio.run(auth.headers(REQUEST)) == {name: value.format(look)}
    assert asyncio.run(auth.on_unauthorized(REQUEST, "")) is False


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"header": "x"},
        {"value": "v"},
        {"token": "t", "header": "x"},
        {"token": "t", "header": "x", "value": "v"},
        {"header": "a b", "value": "v"},
        {"token": "t", "other": 1},
    ],
)
def test_one_form_or_the_other(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StaticOptions.model_validate(options)


def test_no_credential_in_its_repr() -> None:
    assert "sek" not in repr(StaticOptions(token="sek"))
