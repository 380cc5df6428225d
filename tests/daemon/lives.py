"""One durable instance through many lives, and what each life left behind: its events, its effects, its answers.

The effects are those of the `proof.effect` step (the plugin beside this file); the answers are those of the control
socket, the events those of the command's stderr.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from agentd.errors import UsageError
from agentd.runtime.ask import ask
from tests.daemon.command import Ended, Running

PLUGIN = Path(__file__).with_name("plugin")


class Effect(NamedTuple):
    """One line of evidence: `phase` is `begin` or `end`."""

    life: int
    phase: str
    run: str
    step: str
    key: str


class Lives:
    """`document` is the configuration; name and store are filled in. The state is in `state` unless `path` is given."""

    def __init__(self, home: Path, document: Mapping[str, Any], *, path: Path | None = None, min_free: int = 0) -> None:
        self.home, self.path = home, path or home / "state"
        self._min_free = min_free
        self.configure(document)
        self.lives: list[Running] = []
        self.ended: list[Ended] = []
        self.accepted: list[str] = []
        """Ids of events that were acknowledged by an answer."""

    def configure(self, document: Mapping[str, Any]) -> None:
        """What the next life is told."""
        whole = {
            "agent": {"name": "proof"},
            "lifecycle": {"run_until": "drained"},
            "observability": {"log_level": "debug"},
            "store": {
                "kind": "file",
                "timeout": "5s",
                "file": {"path": str(self.path), "min_free": self._min_free},
                "retention": {"runs": {"keep_last": 1_000_000}},
            },
            **document,
        }
        (self.home / "agentd.json").write_text(json.dumps(whole))

    # --- a life --------------------------------------------------------------------------------------------------

    def begin(self, *, ready: bool = True, under: tuple[str, ...] = ()) -> Running:
        """Start the daemon; `under` is a command that runs it."""
        extra = {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PLUGIN), os.environ.get("PYTHONPATH")))),
            "PROOF": str(self.home / "effects"), "PROOF_LIFE": str(len(self.lives)),
        }  # fmt: skip
        life = Running(self.home, "-c", "agentd.json", env=extra, under=under)
        self.lives.append(life)
        if ready:
            life.wait_for("proc.ready")
        return life

    @contextmanager
    def life(self) -> Iterator[Running]:
        """A life that ends by SIGKILL at the latest."""
        life = self.begin()
        try:
            yield life
        finally:
            if life.process.poll() is None:
                self.kill()

    def kill(self) -> Ended:
        """SIGKILL the present life."""
        self.ended.append(self.lives[-1].kill())
        return self.ended[-1]

    def end(self, number: int | None = 15, timeout: float = 40) -> Ended:
        """Drain the present life."""
        self.ended.append(self.lives[-1].end(number, timeout))
        return self.ended[-1]

    def close(self) -> None:
        """Leave nothing running."""
        for life in self.lives:
            if life.process.poll() is None:
                life.kill()

    # --- operations ----------------------------------------------------------------------------------------------

    def ask(self, op: str, /, **args: Any) -> Any:
        """The value of an operation. Raises Refused for an error, UsageError when nobody answers."""
        reply = ask(self.path, op, args, timeout=20)
        if not reply["ok"]:
            raise Refused(reply["error"]["message"])
        return reply["value"]

    def submit(self, workflow: str, id: str, **inputs: Any) -> bool:
        """Ask for a run; whether it was acknowledged."""
        try:
            answer = self.ask("run", workflow=workflow, id=id, inputs=inputs)
        except (UsageError, ValueError, OSError):
            return False  # killed before the answer
        self.accepted.append(answer["run"])
        return True

    def status(self, run: str) -> str:
        """The status of one run. Raises Refused when there is no such run."""
        return str(self.ask("status", run=run)["status"])

    def finish(self, timeout: float = 60) -> dict[str, int]:
        """Wait until nothing is left to do; how many runs ended with each status."""
        until = time.monotonic() + timeout
        while True:
            standing = self.ask("status")
            if not standing["runs"] and not standing["inbox"]:
                return dict(standing["finished"])
            assert time.monotonic() < until, f"still there: {standing['runs'][:5]} {standing['inbox'][:5]}"
            time.sleep(0.02)

    # --- the evidence --------------------------------------------------------------------------------------------

    def effects(self) -> list[Effect]:
        """Every line of evidence, in order."""
        with suppress(FileNotFoundError):
            lines = (self.home / "effects").read_text().splitlines()
            return [Effect(int(life), *rest) for life, *rest in map(str.split, lines)]
        return []

    def named(self, event: str) -> list[tuple[int, dict[str, Any]]]:
        """The events of that name, each with the number of its life."""
        return [(n, e) for n, life in enumerate(self.lives) for e in life.events if e.get("event") == event]

    def acknowledged(self) -> set[str]:
        """Every event that anybody was told of: by an answer, or by a `start.fired` line."""
        return {*self.accepted, *(e["inbox_event"] for _, e in self.named("start.fired"))}

    def check_effects(self) -> None:
        """What holds at any time: one key a step, and nothing is done again after its end was told."""
        keys: dict[tuple[str, str], set[str]] = {}
        done: dict[tuple[str, str], int] = {}
        for n, e in self.named("step.done"):
            assert (e["run"], e["step"]) not in done, f"ended twice: {e}"
            done[e["run"], e["step"]] = n
        for effect in self.effects():
            place = (effect.run, effect.step)
            keys.setdefault(place, set()).add(effect.key)
            assert effect.life <= done.get(place, effect.life), f"performed again after its step.done: {effect}"
        assert all(len(found) == 1 for found in keys.values()), keys

    def check_restores(self) -> None:
        """Exactly one restore line in each life that became ready, and generations that only grow."""
        last = 0
        for life in self.lives:
            told = [e for e in life.events if e["event"] in ("restore.done", "restore.fresh")]
            ready = any(e["event"] == "proc.ready" for e in life.events)
            assert len(told) == 1 or (not told and not ready), told
            for e in told:
                assert e["generation"] > last
                last = e["generation"]


class Refused(Exception):
    """What the daemon answered instead of a value."""


class Submitter:
    """Asks for runs as fast as they are acknowledged, in a thread, until the daemon is gone."""

    def __init__(self, lives: Lives, workflow: str, prefix: str, most: int) -> None:
        self._lives, self._workflow, self._prefix, self._most = lives, workflow, prefix, most
        self._thread = threading.Thread(target=self._submit, daemon=True)
        self._thread.start()

    def _submit(self) -> None:
        for i in range(self._most):
            if not self._lives.submit(self._workflow, f"{self._prefix}-{i}", i=i):
                return

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


def kill_rounds(lives: Lives, workflow: str, rounds: int, *, runs: int, within: float, seed: int | None = None) -> None:
    """SIGKILL so many lives, each at a random instant of `within` seconds from when it answers, or while it boots.

    In each, up to `runs` runs are asked for. After the last, a life that is left alone finishes everything.
    """
    seed = random.randrange(1 << 30) if seed is None else seed
    print(f"seed {seed}")  # noqa: T201 pytest shows it when a round fails
    dice = random.Random(seed)
    for n in range(rounds):
        life = lives.begin(ready=False)
        if dice.random() < 0.15:
            time.sleep(dice.uniform(0, 0.6))
            lives.kill()
            continue
        life.wait_for("proc.ready")
        submitter = Submitter(lives, workflow, f"r{n}", runs)
        time.sleep(dice.uniform(0, within))
        lives.kill()
        submitter.join()
        lives.check_effects()
        lives.check_restores()


def check_all_done(lives: Lives) -> None:
    """Everything acknowledged became a run that completed, and so did what was accepted without an answer."""
    ended = lives.finish()
    assert set(ended) <= {"completed"}, ended
    for run in lives.acknowledged():
        assert lives.status(run) == "completed"
    lives.check_effects()
    lives.check_restores()
