"""What a failed call means: retry here, try the next endpoint, or neither. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from agentd.intelligence import wire
from agentd.intelligence.wire import mapping
from agentd.ports.model import ModelFault

Kind = Literal["retry", "failover", "fatal"]

BAD_GATEWAY = 502
"""What a body without a usable answer and without a code counts as."""

_STATUS_OF_TYPE = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "authentication_error": 401,
    "permission_error": 403,
    "billing_error": 402,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
}
_SPENT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
"""Codes of an account that is empty: no wait helps, another endpoint may."""


def kind_of(status: int, error: Any = None) -> Kind:
    """What to do about `status`, where `error` is the provider's error object if there was one.

    429, 408 and 5xx are worth a retry; a redirect (never followed: it would carry the credential along) and an empty
    account are the next endpoint's turn; any other refusal would be the same everywhere.
    """
    about = mapping(error)
    if _SPENT & {str(about.get("code")), str(about.get("type"))}:
        return "failover"
    if status in (408, 429) or status >= 500:
        return "retry"
    return "failover" if status < 400 else "fatal"


def read_text(status: int, body: bytes) -> str:
    """The text of an answer. Raises :class:`ModelFault` for one that is no UTF-8; an error page may be anything."""
    try:
        return wire.decode(body)
    except UnicodeDecodeError as e:
        if status >= 300:
            return body.decode("utf-8", "replace")
        raise bad_gateway("the answer is no UTF-8") from e


def bad_gateway(why: str) -> ModelFault:
    """The fault of an answer that cannot be one: worth a retry."""
    return ModelFault(why, kind="retry", status=BAD_GATEWAY)


def fault_of(status: int, payload: Any, text: str = "", tools: Iterable[str] = ()) -> ModelFault:
    """The fault in an answer that is none: `payload` is the body's JSON (None if it is none), `text` the body.

    `status` is the HTTP status; under 400 the body's own code counts instead, and without one it is a bad gateway.
    `tools` are the names of the request's tools, so that a complaint about one can name it.
    """
    error = _error_in(payload)
    if status < 300:
        status = _code(error) or BAD_GATEWAY
    message = _words(error) or _words(payload) or " ".join(text.split())[:300] or "an empty body"
    return ModelFault(
        message[:2000],
        kind=kind_of(status, error),
        status=status,
        tool=_tool(f"{message} {mapping(error).get('param', '')}", tools),
    )


def _error_in(payload: Any) -> Any:
    about = mapping(payload)
    return about.get("error") or about.get("errors") or about.get("detail")


def _code(error: Any) -> int | None:
    """The HTTP status an error object speaks of, as a number, as text, or by its type."""
    about = mapping(error)
    for value in (about.get("code"), about.get("status"), about.get("status_code")):
        if str(value).isascii() and str(value).isdigit() and 400 <= int(str(value)[:9]) <= 599:
            return int(str(value))
    for value in (about.get("type"), about.get("code")):
        if isinstance(value, str) and value in _STATUS_OF_TYPE:
            return _STATUS_OF_TYPE[value]
    return None


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    about = mapping(value)
    for key in ("message", "msg", "detail", "error", "type"):
        if isinstance(about.get(key), str) and about[key]:
            return str(about[key])
    return ""


def _tool(message: str, tools: Iterable[str]) -> str:
    """The tool `message` complains of: by name, or by its place (``tools[3]``, ``tools.3.``)."""
    names = list(tools)
    if place := re.search(r"\btools[.\[](\d{1,4})\b", message):
        at = int(place[1])
        return names[at] if at < len(names) else ""
    found = [n for n in names if n and re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", message)]
    return max(found, key=len, default="")
