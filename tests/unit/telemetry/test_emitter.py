"""One event is one physical line of valid JSON, the canonical block first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.errors import StoreFull
from agentd.security.redaction import Redactor
from agentd.telemetry.emitter import Telemetry
from agentd.telemetry.encode import MAX_LINE
from agentd.telemetry.trace import TraceContext
from agentd.telemetry.vocabulary import CANONICAL, UnknownEvent


class Lines:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def put(self, line: str) -> None:
        self.texts.append(line)

    @property
    def last(self) -> dict[str, Any]:
        text = self.texts[-1]
        assert text.endswith("\n")
        assert len(text.splitlines()) == 1, "more than one physical line"
        assert len(text.encode()) <= MAX_LINE
        return json.loads(text, parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))


def telemetry(lines: Lines, **options: Any) -> Telemetry:
    options.setdefault("now", lambda: 1782412201.4129)
    return Telemetry(lines, redactor=options.pop("redactor", Redactor()), run_id="01RUN", pid=4711, **options)


def test_the_line_of_the_guide() -> None:
    lines = Lines()
    telemetry(lines)("proc.start", version="1.1.0", runtime="1", instance="agentd", config_files=["/etc/task.yaml"])
    assert lines.texts == [
        '{"ts":"2026-06-25T18:30:01.412Z","level":"info","event":"proc.start","run_id":"01RUN","agent_id":"sup",'
        '"agent_path":"0","comp":"supervisor","pid":4711,"version":"1.1.0","runtime":"1","instance":"agentd",'
        '"config_files":["/etc/task.yaml"]}\n'
    ]


def test_the_block_comes_first_and_cannot_be_shadowed() -> None:
    lines = Lines()
    log = telemetry(lines).bind(trace=TraceContext("a" * 32, "b" * 16, "c" * 16), agent_path="0.2")
    log(
        "run.done", run="r", status="failed", err=StoreFull("no room"), dur_ms=1.23456, msg="m", pid=1, ts="x", comp="y"
    )
    line = lines.last
    assert list(line)[: len(CANONICAL)] == list(CANONICAL)
    assert (line["pid"], line["_pid"], line["_ts"], line["_comp"]) == (4711, 1, "x", "y")
    assert (line["agent_path"], line["parent_span_id"], line["dur_ms"]) == ("0.2", "c" * 16, 1.235)
    assert line["err"] == {"type": "store_full", "message": "no room"}


def test_events_speak_for_their_component_and_at_their_level() -> None:
    lines = Lines()
    log = telemetry(lines)
    log("intel.failover", index=0, host="gw", to=1, reason="503")
    assert (lines.last["comp"], lines.last["level"]) == ("intel", "warn")
    log("step.start", run="r", step="s", kind="noop", attempt=1, level="debug")
    assert lines.last["event"] == "intel.failover", "below the level, not written"
    log.configure(level="debug", content=False)
    log.bind(run_id="other")("shard.skipped", item="x")
    assert (lines.last["level"], lines.last["run_id"]) == ("debug", "other")


def test_content_is_a_length_and_a_hash_until_it_is_switched_on() -> None:
    lines = Lines()
    log = telemetry(lines)
    log("turn.reply", ctx="c", chars=2, text="hé")
    assert "text" not in lines.last
    assert (lines.last["text_bytes"], len(lines.last["text_sha256"])) == (3, 16)
    log.configure(level="info", content=True)
    log("turn.reply", ctx="c", chars=2, text="hé")
    assert lines.last["text"] == "hé"


@pytest.mark.parametrize("view", [None])
def test_a_secret_never_appears(view: None) -> None:
    lines = Lines()
    log = telemetry(lines, redactor=Redactor(['pa"ss\nword', "tok-12345"]), content=True)
    log("run.done", run="r", output={"a": 'x pa"ss\nword y', "Authorization": "z", "tok-12345": 1},
        msg="Bearer abcdefgh", err=ValueError("dial https://me:tok-12345@h/ failed"))  # fmt: skip
    text = lines.texts[-1]
    for secret in ("ss\\nword", "tok-12345", "abcdefgh", '"z"', "me:"):
        assert secret not in text
    log("run.done", run="r", output="tok-12345" * 400_000)
    assert "tok-12345" not in lines.texts[-1]


@pytest.mark.parametrize("value", [
    "\x00 \x1b[31m \r\n \u2028 \u2029 \x85 \x9b", "\ud800 lone", "\ud83d\ude00", float("nan"), float("inf"), b"bytes",
    {1: {2: 3}, None: 4, (1, 2): 5}, {1, 2}, object(), ValueError("x"), 10**400, [[]] * 3,
])  # fmt: skip
def test_any_value_makes_one_line_of_json(value: Any) -> None:
    lines = Lines()
    telemetry(lines, content=True)("run.done", run=value, output={"deep": [value]})
    assert lines.last["event"] == "run.done"
    assert "0x" not in lines.texts[-1], "a repr"


def test_a_cycle_and_a_depth_nobody_follows() -> None:
    lines = Lines()
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    telemetry(lines, content=True)("run.done", run="r", output=[cycle, deep])
    assert lines.last["run"] == "r"


@pytest.mark.parametrize("value", ["x" * (2 << 20), "é" * (1 << 20), [{"k": "y" * 5000}] * 1000,
                                   {f"k{i}": "z" * 500 for i in range(5000)}, "\x00" * (1 << 20)])  # fmt: skip
def test_a_huge_line_is_cut_with_a_mark(value: Any) -> None:
    lines = Lines()
    telemetry(lines, content=True)("run.done", run="r", output=value)
    assert lines.last["cut_bytes"] > MAX_LINE
    assert lines.last["run"] == "r"
    assert "more" in lines.texts[-1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=5))
def test_fuzzed_fields_make_one_line_of_json(fields: dict[str, Any]) -> None:
    lines = Lines()
    telemetry(lines).emit_frame({"t": "log", "event": "loop.start", "level": "info", "msg": "m", "fields": fields})
    assert (lines.last["event"], lines.last["msg"], lines.last["pid"]) == ("loop.start", "m", 4711)


@pytest.mark.parametrize("frame", [{}, {"event": 3, "level": "loud", "msg": None, "fields": None},
                                   {"event": 'a"b\n', "level": [], "fields": {"dur_ms": "x"}}])  # fmt: skip
def test_a_strange_frame_is_a_line_all_the_same(frame: dict[str, Any]) -> None:
    lines = Lines()
    telemetry(lines).emit_frame(frame)
    assert lines.last["level"] == "info"


def test_strict_refuses_what_is_not_in_the_vocabulary() -> None:
    log = telemetry(Lines(), strict=True)
    with pytest.raises(UnknownEvent, match=r"run\.dnoe"):
        log("run.dnoe")
    with pytest.raises(UnknownEvent, match="statsu"):
        log("run.done", run="r", statsu="completed")
    log("trigger.armed", workflow="w", node="n", kind="loop", every="3s")


def test_without_strict_it_is_written() -> None:
    lines = Lines()
    telemetry(lines)('a "new" one', x=1)
    assert (lines.last["event"], lines.last["x"]) == ('a "new" one', 1)
