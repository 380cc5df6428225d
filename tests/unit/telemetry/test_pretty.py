"""What a person sees."""

from __future__ import annotations

import io

from agentd.security.redaction import Redactor
from agentd.telemetry.emitter import Telemetry
from agentd.telemetry.pretty import PrettyView, wanted
from agentd.telemetry.vocabulary import EVENTS


class Lines:
    def __init__(self) -> None:
        self.text = io.StringIO()

    def put(self, line: str) -> None:
        self.text.write(line)

    def take(self) -> str:
        text = self.text.getvalue()
        self.text = io.StringIO()
        return text


def shown(view: PrettyView) -> tuple[Telemetry, Lines]:
    lines = Lines()
    return Telemetry(lines, redactor=Redactor(["s3cret!"]), view=view, now=lambda: 1782412201.0), lines


def test_a_line_says_what_happened() -> None:
    log, lines = shown(PrettyView(colour=False, progress=False))
    log("mcp.connect", server="crm", tools=3, resources=0, protocol="2025-11-25", dur_ms=1500)
    assert lines.take() == "18:30:01 • connected crm · 3 tools · 1.5 s\n"
    log("mcp.connect.fail", server="crm", err=ConnectionError("Bearer abc123456 s3cret! refused"))
    assert lines.take() == "18:30:01 ! cannot connect crm: Bearer *** *** refused\n"


def test_a_tools_answer_cannot_reach_the_terminal() -> None:
    log, lines = shown(PrettyView(colour=False, progress=False))
    log("run.done", run="r", status="x\x1b]0;title\x07\n\x9b2J\u202e", msg="a\r\nb")
    text = lines.take()
    assert text.count("\n") == 1
    assert text.rstrip("\n").isprintable()


def test_every_event_has_a_line_without_its_fields() -> None:
    log, lines = shown(PrettyView(colour=True, progress=False, verbose=True))
    for event in EVENTS:
        log.configure(level="debug", content=True)
        log(event)
        assert lines.take().count("\n") == 1


def test_the_moving_line_follows_the_work_and_goes_away() -> None:
    clock = [100.0]
    view = PrettyView(colour=False, progress=True, width=lambda: 60, monotonic=lambda: clock[0])
    log, lines = shown(view)
    log("run.start", run="r", workflow="w")
    log("intel.call", index=0, host="gw")
    assert lines.take().endswith("\r\x1b[K0 s · the model thinks · 1 round, 0 tool calls, 0 tokens")
    clock[0] += 7
    assert view.tick().startswith("\r\x1b[K7 s · ")
    log("run.done", run="r", status="completed")
    assert lines.take().endswith("run completed\n")
    assert view.tick() == ""


def test_json_whenever_stderr_is_no_terminal(tmp_path) -> None:
    with open(tmp_path / "log", "w") as f:
        assert not wanted("pretty", f.fileno())
        assert not wanted("auto", f.fileno())
