"""What a call cost when nobody says: an estimate, marked as one, never zero. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agentd.ports.model import Message, ModelReply, ModelRequest, Usage

_BYTES_PER_TOKEN = 3.5


def charge(request: ModelRequest, reply: ModelReply | None) -> Usage:
    """The usage to account for: the provider's where it reported it, else an estimate of what went over the wire.

    A `reply` of None is a call that was given up: what was asked is charged all the same.
    """
    if reply is not None and reply.usage.reported:
        return reply.usage
    told = reply.usage if reply is not None else Usage()
    asked = _size(request.messages) + sum(
        len(json.dumps(dict(t.parameters))) + len(t.description) for t in request.tools
    )
    said = _size([reply.message]) if reply is not None else 0
    return Usage(tokens_in=max(told.tokens_in, _tokens(asked)), tokens_out=max(told.tokens_out, _tokens(said)))


def _tokens(size: int) -> int:
    return max(1, round(size / _BYTES_PER_TOKEN)) if size else 0


def _size(messages: Iterable[Message]) -> int:
    return sum(
        len(m.text.encode("utf-8", "surrogatepass")) + sum(len(c.name) + len(json.dumps(c.arguments)) for c in m.calls)
        for m in messages
    )
