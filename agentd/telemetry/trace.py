"""W3C trace context: read, continued and written, no SDK needed.

https://www.w3.org/TR/trace-context/ (level 2). A malformed header is ignored as the standard asks: a new trace begins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII | re.DOTALL)
_STATE_LIMIT = 512
Random = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A span's place in a trace: `trace_id` 32 and `span_id` 16 lower-case hex digits; `parent_id` "" at the root."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    sampled: bool = True
    state: str = ""

    @classmethod
    def parse(cls, traceparent: str, tracestate: str = "") -> TraceContext | None:
        """The caller's span as given by its headers, None when `traceparent` is not well-formed."""
        found = _FORM.fullmatch(traceparent.strip(" \t"))
        if found is None:
            return None
        version, trace_id, span_id, flags, rest = found.groups()
        if version == "ff" or (version == "00" and rest) or not int(trace_id, 16) or not int(span_id, 16):
            return None
        state = tracestate if len(tracestate) <= _STATE_LIMIT and tracestate.isprintable() else ""
        return cls(trace_id, span_id, sampled=bool(int(flags, 16) & 1), state=state)

    @classmethod
    def begin(cls, random: Random = os.urandom) -> TraceContext:
        """The root span of a new trace."""
        return cls(random(16).hex(), random(8).hex())

    def child(self, random: Random = os.urandom) -> TraceContext:
        """A new span under this one."""
        return replace(self, span_id=random(8).hex(), parent_id=self.span_id)

    @property
    def traceparent(self) -> str:
        """The header that makes a callee's spans children of this one."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"
