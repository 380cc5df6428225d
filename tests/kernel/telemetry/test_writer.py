"""The writer meets real pipes: unread, broken, closed, full and non-blocking."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.security.redaction import Redactor
from agentd.telemetry.emitter import Telemetry
from agentd.telemetry.writer import LineWriter


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(fd)


def log_to(writer: LineWriter) -> Telemetry:
    log = Telemetry(writer, redactor=Redactor(), run_id="r", level="debug", content=True)
    writer.notice = log.notice
    return log


def drain(reader: int) -> list[dict[str, object]]:
    """Every line until the end of the stream."""
    with os.fdopen(os.dup(reader), "rb") as f:
        return [json.loads(line) for line in f]


def test_lines_arrive_in_order(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    lines = LineWriter(writer)
    log = log_to(lines)
    for i in range(200):
        log("step.start", run="r", step=f"s{i}", kind="noop", attempt=1)
    assert lines.flush(5)
    os.close(writer)
    assert [line["step"] for line in drain(reader)] == [f"s{i}" for i in range(200)]


def test_a_pipe_that_nobody_reads_costs_lines_and_nothing_else(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    lines = LineWriter(writer, capacity=100_000)
    log = log_to(lines)
    for i in range(5000):  # about a megabyte into 64 KiB of pipe and 100 kB of queue: every call returns
        log("step.start", run="r", step=f"s{i}", kind="noop", attempt=1)
    assert lines.dropped > 1000
    assert not lines.flush(0.05), "it waits for the reader, and only as long as it was told"

    got: list[dict[str, object]] = []
    reading = threading.Thread(target=lambda: got.extend(drain(reader)))
    reading.start()
    assert lines.flush(10)
    log("proc.exit", code=0)
    assert lines.flush(10)
    os.close(writer)
    reading.join(10)
    told = sum(int(str(line["lines"])) for line in got if line["event"] == "log.dropped")
    assert told == lines.dropped
    assert len([line for line in got if line["event"] == "step.start"]) + told == 5000
    assert any(line["event"] == "proc.exit" for line in got), "once there is room, lines are written again"


def test_a_reader_that_dies_is_survived(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    lines = LineWriter(writer)
    log = log_to(lines)
    os.close(reader)
    for _ in range(3):
        log("step.start", run="r")
        assert lines.flush(5)
    assert lines.dropped == 3


def test_a_closed_descriptor_is_survived(pipe: tuple[int, int]) -> None:
    lines = LineWriter(pipe[1])
    os.close(pipe[1])
    log_to(lines)("proc.start", version="1")
    assert lines.flush(5)
    assert lines.dropped == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_survived_and_tried_again() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    lines = LineWriter(fd)
    log = log_to(lines)
    log("proc.start", version="1")
    assert lines.flush(5)
    assert lines.dropped == 1
    reader, writer = os.pipe()
    os.dup2(writer, fd)
    log("proc.exit", code=0)
    assert lines.flush(5)
    os.close(writer)
    os.close(fd)
    assert [line["event"] for line in drain(reader)] == ["proc.exit", "log.dropped"]
    os.close(reader)


def test_a_pipe_made_non_blocking_by_somebody_else_loses_nothing(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    lines = LineWriter(writer)
    log = log_to(lines)
    for i in range(2000):
        log("step.start", run="r", step=f"s{i}", kind="noop", attempt=1)
    got: list[dict[str, object]] = []
    reading = threading.Thread(target=lambda: got.extend(drain(reader)))
    reading.start()
    assert lines.flush(20)
    os.close(writer)
    reading.join(10)
    assert (len(got), lines.dropped) == (2000, 0)


def test_a_huge_line_arrives_as_one(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    lines = LineWriter(writer)
    got: list[dict[str, object]] = []
    reading = threading.Thread(target=lambda: got.extend(drain(reader)))
    reading.start()
    log_to(lines)("tool.result", server="s", tool="t", result="\x00\u2028\ud800" * 500_000)
    assert lines.flush(10)
    os.close(writer)
    reading.join(10)
    assert len(got) == 1
    assert "cut_bytes" in got[0]


def test_no_thread_before_the_first_line_and_progress_moves_while_nothing_is_said(pipe: tuple[int, int]) -> None:
    lines = LineWriter(pipe[1])
    before = threading.active_count()
    asked = threading.Event()
    lines.idle = lambda: asked.set() or ""  # type: ignore[func-returns-value]
    assert threading.active_count() == before
    lines.put("{}\n")
    assert threading.active_count() == before + 1
    assert asked.wait(10)


_CHILD = """
    import os, sqlite3, sys
    from agentd.telemetry.descriptors import hold_standard_descriptors
    closed = hold_standard_descriptors()
    print("for a person", file=sys.stderr)
    from agentd.security.redaction import Redactor
    from agentd.telemetry.emitter import Telemetry
    from agentd.telemetry.writer import LineWriter
    db = sqlite3.connect(sys.argv[1])
    db.execute("create table t (x)")
    lines = LineWriter(2)
    log = Telemetry(lines, redactor=Redactor())
    for i in range(100):
        log("proc.start", version="agentd-marker")
    lines.flush(5)
    db.execute("insert into t values (?)", (",".join(map(str, sorted(closed))),))
    db.commit()
"""


@pytest.mark.parametrize(
    ("closing", "closed"), [("2>&-", "2"), (">&- 2>&-", "1,2"), ("<&- >&- 2>&-", "0,1,2"), ("", "")]
)
def test_no_line_ends_in_a_file_that_got_a_closed_descriptor(tmp_path: Path, closing: str, closed: str) -> None:
    path = tmp_path / "state.db"
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(_CHILD))
    done = subprocess.run(["sh", "-c", f'"$0" "$1" "$2" {closing}', sys.executable, script, path], timeout=30,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"agentd-marker" not in path.read_bytes()
    assert sqlite3.connect(path).execute("select x from t").fetchall() == [(closed,)]


@pytest.mark.parametrize("stderr", ["unread", "dead"])
def test_a_process_exits_in_time_whatever_its_reader_does(stderr: str) -> None:
    code = textwrap.dedent("""
        from agentd.security.redaction import Redactor
        from agentd.telemetry.emitter import Telemetry
        from agentd.telemetry.writer import LineWriter
        lines = LineWriter(2)
        log = Telemetry(lines, redactor=Redactor())
        for i in range(20000):
            log("proc.start", version="x" * 100)
        print(lines.dropped + 1, lines.flush(0.2))
    """)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout and child.stderr
    if stderr == "dead":
        child.stderr.close()
    assert child.stdout.read().split()[1] == (b"True" if stderr == "dead" else b"False")
    assert child.wait(10) == 0
    child.stdout.close()
    child.stderr.close()
