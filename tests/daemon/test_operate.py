"""`agentd run|status|cancel|signal|pause|resume` against a real daemon on the file store."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.command import Ended, Running, run

WORKFLOWS: list[dict[str, Any]] = [
    {
        "name": "greet",
        "steps": {
            "s": {"kind": "manual"},
            "f": {"kind": "finish", "depends_on": ["s"], "output": "hello {{inputs.who | nobody}}"},
        },
    },
    {
        "name": "refuse",
        "steps": {
            "s": {"kind": "manual"},
            "f": {"kind": "finish", "depends_on": ["s"], "status": "refused", "output": "no"},
        },
    },
    {
        "name": "wait",
        "steps": {
            "s": {"kind": "manual"},
            "go": {"kind": "wait", "on": "signal", "name": "go", "depends_on": ["s"]},
            "f": {"kind": "finish", "depends_on": ["go"], "output": "{{steps.go.output.payload}}"},
        },
    },
    {
        "name": "ask",
        "steps": {
            "s": {"kind": "manual"},
            "q": {"kind": "human", "question": "how many?", "schema": {"type": "integer"}, "depends_on": ["s"]},
            "f": {"kind": "finish", "depends_on": ["q"], "output": "{{steps.q.output}}"},
        },
    },
    {
        "name": "hear",
        "steps": {
            "s": {"kind": "signal", "name": "hear"},
            "f": {"kind": "finish", "depends_on": ["s"], "output": "{{steps.s.output}}"},
        },
    },
]


class Lived:
    """A daemon that may be killed and started again, and the commands that reach it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        document = {
            "agent": {"name": "t"},
            "store": {"kind": "file", "file": {"path": str(directory / "kept")}},
            "workflows": WORKFLOWS,
        }
        (directory / "c.yaml").write_text(json.dumps(document))
        self.start()

    def start(self) -> None:
        self.daemon = Running(self.directory, "-c", "c.yaml")
        self.daemon.wait_for("proc.ready")

    def ask(self, *words: str) -> Ended:
        return run(self.directory, *words, "--state-dir", "kept")


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[Lived]:
    lived = Lived(tmp_path)
    yield lived
    if lived.daemon.process.poll() is None:
        assert lived.daemon.end().code == 0


def test_runs_print_their_output_and_exit_as_a_job(lived: Lived) -> None:
    assert lived.ask("run", "greet", "--wait", "--input", "who=you").out == "hello you\n"
    done = lived.ask("run", "greet", "--wait", "--inputs", '{"who": 3}', "--id", "r1", "--json")
    assert json.loads(done.out)["output"] == "hello 3" and done.code == 0
    refused = lived.ask("run", "refuse", "--wait")
    assert (refused.code, refused.out) == (5, "no\n")
    status = lived.ask("status")
    assert status.code == 0 and status.out.startswith("t: running, up ") and "greet" in status.out
    assert "completed" in lived.ask("status", "r1").out
    named = run(lived.directory, "status", "--json", "-c", "c.yaml")
    assert json.loads(named.out)["finished"] == {"completed": 2, "refused": 1}


def test_what_was_accepted_survives_a_kill(lived: Lived) -> None:
    assert lived.ask("run", "wait", "--id", "w1").out == "w1\n"
    lived.daemon.wait_for("run.start", run="w1")
    assert lived.ask("pause").out == "paused\n"
    assert lived.ask("run", "wait", "--id", "w2").out == "w2\n"
    assert lived.ask("signal", "go", "--run", "w2", "--payload", '"early"').out == "kept until the run asks for it\n"
    lived.daemon.kill()
    lived.start()
    lived.daemon.wait_for("run.done", run="w2")
    assert lived.ask("signal", "go", "--payload", '{"n": 1}').out == "woke 1, started 0\n"
    assert json.loads(lived.ask("run", "wait", "--id", "w1", "--wait").out) == {"n": 1}
    assert lived.ask("run", "wait", "--id", "w2", "--wait").out == "early\n"
    assert lived.ask("signal", "hear", "--payload", "1").out == "woke 0, started 1\n"
    nobody = lived.ask("signal", "nobody")
    assert (nobody.code, nobody.out) == (1, "woke 0, started 0\n")


def test_a_question_is_answered_after_a_kill(lived: Lived) -> None:
    lived.ask("run", "ask", "--id", "q1")
    task = lived.daemon.wait_for("human.ask")["task"]
    lived.daemon.kill()
    lived.start()
    listed = lived.ask("answer").out
    assert task in listed and "how many?" in listed and "integer" in listed
    wrong = lived.ask("answer", task, "--value", "many")
    assert wrong.code == 2 and "schema" in wrong.one("proc.exit")["err"]["message"]
    assert lived.ask("answer", task, "--value", "3").out == f"answered {task}\n"
    assert lived.ask("run", "ask", "--id", "q1", "--wait").out == "3\n"
    assert lived.ask("answer").out == "nobody is asked anything\n"
    assert lived.ask("answer", task, "--value", "4").code == 1


def test_cancel_pause_resume_of_a_run(lived: Lived) -> None:
    lived.ask("run", "wait", "--id", "w1")
    assert lived.ask("pause", "w1").out == "paused w1\n"
    assert "paused" in lived.ask("status", "w1").out
    assert lived.ask("resume", "w1").out == "resumed w1\n"
    assert lived.ask("cancel", "w1", "--reason", "enough").out == "cancelled w1\n"
    assert lived.ask("run", "wait", "--id", "w1", "--wait").code == 1
    again = lived.ask("cancel", "w1")
    assert again.code == 1 and again.one("proc.exit")["err"]["type"] == "no_run"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run",), "wrong number of arguments"),
        (("run", "greet", "--input", "who"), "NAME=VALUE"),
        (("run", "greet", "--inputs", "[1]"), "JSON object"),
        (("signal", "go", "--payload", "{"), "needs JSON"),
        (("status", "--json=1"), "takes no value"),
        (("status", "--state-dir"), "needs a value"),
        (("status", "--state-dir", "nowhere"), "no daemon runs on nowhere"),
        (("status", "--store.kind", "memory"), "no directory"),
        (("status", "--colour", "red"), "unknown flag"),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = run(tmp_path, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.one("config.invalid")["msg"]


def test_a_drain_answers_whoever_waits(lived: Lived) -> None:
    waiting = Running(lived.directory, "run", "wait", "--wait", "--id", "w1", "-c", "c.yaml")
    lived.daemon.wait_for("run.start", run="w1")
    assert lived.daemon.end(signal.SIGTERM).code == 0
    ended = waiting.end(None)
    assert ended.code == 1 and "goes on when it is started again" in ended.one("proc.exit")["err"]["message"]
    assert not (lived.directory / "kept" / "control.sock").exists()
