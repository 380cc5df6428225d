"""A crash in the midst of work: 500 runs of four steps, SIGKILL at three quarters of the effects, and a new life.

    .venv/bin/python benchmarks/recovery.py [--rounds 3] [--runs 500] [--many 10000] [--venvs DIR]

Runs wait at a gate before their third step, so that all are under way; the gate opens, the kill comes, and the time
counts from the start of the new process until every run is over. Then 10,000 runs with four records each, all waiting,
are restored, beside the time it takes to read those records back and do nothing with them. With `--venvs`, `dbos` and
`langgraph` there take part.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from measure import HERE, Line, agentd, aim, configure, contest, directory, environment, python_of, ratio
from measure import table as show

MOST = 300.0
"""Seconds for any one wait."""


def configured(store: Path, count: int) -> list[str]:
    """The command of agentd for `count` runs of four steps."""
    steps: dict[str, object] = {"start": {"kind": "bench.burst", "count": count}}
    for i, before in enumerate(("start", "s0", "s1", "s2")):
        steps[f"s{i}"] = {"kind": "bench.effect", "note": str(i), "depends_on": [before]}
    steps["s2"] = {**steps["s2"], "gate": str(store / "gate")}  # type: ignore[dict-item]
    steps["end"] = {"kind": "finish", "depends_on": ["s3"]}
    workflow = {"name": "four", "concurrency": {"max_runs": count}, "steps": steps}
    file = configure(
        store,
        limits={"max_runs": count},
        lifecycle={"run_until": "drained"},
        observability={"log_level": "info"},
        workflows=[workflow],
    )
    return [agentd(), "-c", str(file)]


@contextlib.contextmanager
def life(command: Sequence[str], store: Path) -> Iterator[Callable[[], float]]:
    """A process until its SIGKILL. The call that is given tells its age in seconds, and fails when it has ended."""
    environ = environment(store, BENCH_EFFECTS=str(store / "effects"))
    with open(store / "log", "ab") as log:
        began = time.perf_counter()
        process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=log)

    def age() -> float:
        seconds = time.perf_counter() - began
        if seconds > MOST or process.poll() is not None:
            raise SystemExit(f"ended too early, or never: {' '.join(command)}\n{(store / 'log').read_text()[-2000:]}")
        return seconds

    try:
        yield age
    finally:
        process.kill()
        process.wait()


class Tail:
    """What was appended to a file since the last look."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = open(path)  # noqa: SIM115 open as long as the benchmark looks
        self._rest = ""

    def lines(self) -> list[str]:
        *whole, self._rest = (self._rest + self._file.read()).split("\n")
        return whole


def recovery(command: Sequence[str], store: Path, count: int, *, logged: bool) -> Line:
    """Both lives. `logged`: ends are `run.done` in the log, else `done` among the effects."""
    effects, log = Tail(store / "effects"), Tail(store / "log")
    done: Counter[str] = Counter()
    over: set[str] = set()

    def look() -> None:
        for line in effects.lines():
            run, what = line.split()[:2]
            if what == "done":
                over.add(run)
            else:
                done[f"{run} {what}"] += 1
        for line in log.lines():
            if logged and '"event":"run.done"' in line:
                over.add(json.loads(line)["run"])

    def until(age: Callable[[], float], effects_done: int, runs_over: int = 0) -> float:
        while len(done) < effects_done or len(over) < runs_over:
            seconds = age()
            time.sleep(0.003)
            look()
        return seconds

    with life(command, store) as age:
        until(age, effects_done=count * 2)
        (store / "gate").touch()
        until(age, effects_done=count * 3)
    look()
    interrupted = count - len(over)
    (store / "again").touch()
    with life(command, store) as age:
        seconds = until(age, effects_done=count * 4, runs_over=count)
    twice = sum(times > 1 for times in done.values())
    return {"seconds": seconds, "interrupted": interrupted, "twice": twice, "lost": count * 4 - len(done)}


def own(count: int) -> Line:
    with directory() as store:
        return recovery(configured(store, count), store, count, logged=True)


def others(python: str, script: str, count: int) -> Line:
    with directory() as store:
        return recovery([python, str(HERE / "peers" / script), str(count)], store, count, logged=False)


# --- restoring many --------------------------------------------------------------------------------------------------


def ready(command: Sequence[str], store: Path) -> float:
    """Seconds from the start of a process to its `proc.ready`."""
    log = Tail(store / "log")
    log.lines()
    with life(command, store) as age:
        while not any('"event":"proc.ready"' in line for line in log.lines()):
            seconds = age()
            time.sleep(0.002)
        return seconds


def read_back(store: Path) -> float:
    """Seconds to read every record of the ledger and parse it; of a copy, as closing would take the log away."""
    with directory() as copy:
        for file in (store / "state").glob("data.db*"):
            shutil.copy(file, copy)
        with contextlib.closing(sqlite3.connect(copy / "data.db")) as db:
            began = time.perf_counter()
            kept = {key: json.loads(text) for key, text in db.execute("SELECT key, envelope FROM ledger")}
            seconds = time.perf_counter() - began
    if not kept:
        raise SystemExit("nothing was kept")
    return seconds


def many(count: int, rounds: int) -> dict[str, Line]:
    """Restore `count` runs that wait, in turn with an empty store and with reading the same records."""
    with directory() as full, directory() as empty:
        command, nothing = configured(full, count), configured(empty, 1)
        (empty / "gate").touch()
        effects = Tail(full / "effects")
        with life(command, full) as age:
            seen = 0
            while seen < count * 2 and age():
                time.sleep(0.05)
                seen += len(effects.lines())
            time.sleep(1)  # until the last "running" is on disk
        ready(command, full)  # the log of the killed process is folded in here, once
        entries = {
            "restored and ready": lambda: {"seconds": ready(command, full)},
            "ready with nothing": lambda: {"seconds": ready(nothing, empty)},
            "records read back": lambda: {"seconds": read_back(full)},
        }
        return contest(entries, rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--venvs")
    given = parser.parse_args()
    dbos, langgraph = python_of(given.venvs, "dbos"), python_of(given.venvs, "langgraph")
    results = contest(
        {
            "agentd": lambda: own(given.runs),
            "DBOS, SQLite": (lambda: others(dbos, "recovery_dbos.py", given.runs)) if dbos else None,
            "LangGraph, sync": (lambda: others(langgraph, "recovery_langgraph.py", given.runs)) if langgraph else None,
        },
        given.rounds,
    )
    columns = {"seconds": ".2f", "interrupted": ",.0f", "twice": ",.0f", "lost": ",.0f"}
    show(f"{given.runs:,} runs x 4 steps, killed at 3/4, medians of {given.rounds} rounds", results, columns)
    met = [
        aim("of LangGraph's time", ratio(results, "agentd", "LangGraph, sync", "seconds"), "<=", 1 / 8),
        aim("of DBOS's time", ratio(results, "agentd", "DBOS, SQLite", "seconds"), "<=", 1 / 15),
        aim("steps lost", results["agentd"]["lost"], "<=", 0),
    ]
    if given.many:
        restored = many(given.many, given.rounds)
        show(f"{given.many:,} waiting runs restored, medians of {given.rounds} rounds", restored, {"seconds": ".2f"})
        took, nothing, floor = (line["seconds"] for line in restored.values())
        met.append(aim("restored, over reading back", (took - nothing) / floor, "<=", 1 / 0.16))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
