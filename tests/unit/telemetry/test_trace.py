"""W3C trace context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.telemetry.trace import TraceContext

GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_continues_a_trace() -> None:
    caller = TraceContext.parse(GOOD, "vendor=1")
    assert caller is not None
    child = caller.child()
    assert (child.trace_id, child.parent_id, child.state) == (caller.trace_id, "b7ad6b7169203331", "vendor=1")
    assert child.traceparent == f"00-{caller.trace_id}-{child.span_id}-01"
    assert TraceContext.parse(child.traceparent) is not None


def test_not_sampled_stays_not_sampled() -> None:
    caller = TraceContext.parse(GOOD[:-1] + "0")
    assert caller is not None
    assert caller.child().traceparent.endswith("-00")


@pytest.mark.parametrize("text", [
    "", "garbage", GOOD.upper(), GOOD + "-x", "ff" + GOOD[2:],
    GOOD.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
    GOOD.replace("b7ad6b7169203331", "0" * 16), GOOD[:-1], GOOD + "\n",
    "00-٠af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
])  # fmt: skip
def test_ignores_what_is_malformed(text: str) -> None:
    assert TraceContext.parse(text) is None


def test_reads_a_later_version() -> None:
    assert TraceContext.parse("cc" + GOOD[2:] + "-what-comes-next") is not None


@given(st.text(max_size=80))
def test_any_text_gets_an_answer(text: str) -> None:
    TraceContext.parse(text, text)


def test_a_root_has_no_parent() -> None:
    root = TraceContext.begin(lambda n: b"\x01" * n)
    assert root.traceparent == f"00-{'01' * 16}-{'01' * 8}-01"
    assert root.parent_id == ""
