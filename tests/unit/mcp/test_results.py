"""What a tool's answer means, and what a failed request does."""

from __future__ import annotations

import pytest

from agentd.mcp.faults import fault_of, is_unreachable, modern_version
from agentd.mcp.meta import call_meta
from agentd.mcp.records import ServerSpec, Tool
from agentd.mcp.results import parse_text, read_result, render_content


def text(*texts: str) -> dict:
    return {"content": [{"type": "text", "text": t} for t in texts]}


@pytest.mark.parametrize(
    ("answer", "value", "told"),
    [
        (text("ok"), "ok", "ok"),
        (text('{"a": 1}'), {"a": 1}, '{"a": 1}'),
        (text("[1", "2]"), "[1\n2]", "[1\n2]"),
        (text("NaN"), "NaN", "NaN"),
        (text("null"), None, "null"),
        ({}, "", ""),
        ({"content": "odd"}, "", ""),
        ({"structuredContent": {"é": 1}}, {"é": 1}, '{"é": 1}'),
        (text('{"a": 1}') | {"structuredContent": {"a": 1}}, {"a": 1}, '{"a": 1}'),
        (text("It is 9") | {"structuredContent": {"t": [9]}}, {"t": [9]}, "It is 9"),
        (text("It is warm") | {"structuredContent": {"t": 9}}, {"t": 9}, 'It is warm\n{"t": 9}'),
    ],
)
def test_the_value_and_the_text(answer, value, told):
    result = read_result("t", None, answer)
    assert (result.value, result.text, result.is_error, result.warnings) == (value, told, False, ())


def test_a_schema_that_cannot_be_read_judges_nothing():
    tool = Tool(name="t", description="", schema={}, output_schema={"type": 7, "$ref": "http://127.0.0.1:9/x"})
    assert not read_result("t", tool, {"structuredContent": {"a": 1}}).is_error


def test_a_question_nobody_answers_is_an_error():
    assert read_result("t", None, {"resultType": "input_required"}).is_error


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"type": "image", "mimeType": "image/png", "data": "AAAA"}, "[image image/png, 3 bytes]"),
        ({"type": "audio", "mimeType": "audio/wav"}, "[audio audio/wav, 0 bytes]"),
        ({"type": "resource_link", "uri": "a://b", "name": "b"}, "[resource a://b b]"),
        ({"type": "resource", "resource": {"uri": "a://b", "text": "hi"}}, "[resource a://b]\nhi"),
        ({"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA"}}, "[resource a://b , 3 bytes]"),
        ({"type": "made_up"}, "[made_up content]"),
        ({}, "[unknown content]"),
        ({"type": "text", "text": None}, ""),
        (7, ""),
    ],
)
def test_what_is_no_text_is_named(block, told):
    assert render_content([block]) == told


def test_deep_text_is_only_text():
    assert parse_text("[" * 100_000) == (None, False)


SESSION = {"http_status": 404, "session": True, "answered": True}


@pytest.mark.parametrize(
    ("code", "message", "data", "lost", "retry"),
    [
        (-32001, "Session not found", SESSION, True, False),
        (-32000, "HTTP 404", SESSION | {"answered": False}, True, False),
        (-32601, "Not Found", SESSION | {"session": False}, False, False),
        (-32001, "Session not found", SESSION | {"http_status": 400}, True, False),
        (-32602, "bad arguments", SESSION | {"http_status": 400}, False, False),
        (-32000, "HTTP 401", SESSION | {"http_status": 401, "answered": False}, True, False),
        (-32000, "unknown session", SESSION | {"http_status": 503}, True, True),
        (-32000, "HTTP 503", SESSION | {"http_status": 503, "answered": False}, False, True),
        (-32022, "Unsupported protocol version", {"supported": []}, True, False),
        (-32000, "ConnectError", {"fault": "ConnectError"}, False, True),
        (-32001, "Request 'tools/call' timed out", None, False, True),
        (-32602, "Unknown tool", None, False, False),
    ],
)
def test_what_a_fault_means(code, message, data, lost, retry):
    fault = fault_of("s", code, message, data)
    assert (fault.session_lost, fault.retry) == (lost, retry)
    assert "'s'" in fault.message


def test_a_refused_credential_is_told_where_to_look():
    assert "auth" in fault_of("s", -32000, "HTTP 401", {"http_status": 401}).message


def test_the_revision_a_refusal_names():
    assert modern_version(-32022, {"supported": ["2026-07-28", "2030-01-01"]}, ["2026-07-28"]) == "2026-07-28"
    assert modern_version(-32601, {"supported": ["2026-07-28"]}, ["2026-07-28"]) == ""
    assert modern_version(-32022, None, ["2026-07-28"]) == ""
    assert is_unreachable({"fault": "ConnectError"}) and not is_unreachable({"fault": "ReadError"})


def test_meta_has_what_is_known():
    meta = call_meta(run_id="r", instance="i", key="k", attempt=2, traceparent="00-a-b-01", claim_key="c", shard="0/2")
    assert meta == {
        "agent/run_id": "r",
        "agent/instance": "i",
        "agent/idempotency_key": "k",
        "agent/attempt": 2,
        "traceparent": "00-a-b-01",
        "agent/claim_key": "c",
        "agent/shard": "0/2",
    }
    assert "traceparent" not in call_meta(run_id="r", instance="i", key="k")


def test_a_spec_keeps_its_secrets_out_of_its_repr():
    assert "hush" not in repr(ServerSpec(name="s", endpoint="http://127.0.0.1", headers={"authorization": "hush"}))
