"""Steps that only compute: no flush of their own, as they are computed again after a crash.

    .venv/bin/python benchmarks/pure.py [--rounds 3] [--steps 20000] [--venvs DIR]

With `--venvs`, `langgraph` there takes part with a tenth of the steps.
"""

from __future__ import annotations

import argparse
import sys

from measure import COUNTERS, Line, agentd, aim, configure, contest, contestant, directory, environment, peer, ratio
from measure import table as show


def pure(count: int) -> Line:
    """The real command: half of the steps assign, half make a text."""
    body = {
        "put": {"kind": "assign", "value": "{{iteration}}", "writes": "n"},
        "say": {"kind": "template", "template": "round {{iteration}} of {{vars.n}}", "depends_on": ["put"]},
    }
    steps = {
        "start": {"kind": "once"},
        "before": {"kind": "bench.measure", "at": "start", "depends_on": ["start"]},
        "loop": {"kind": "iterate", "max_iterations": count // 2, "body": body, "depends_on": ["before"]},
        "after": {"kind": "bench.measure", "at": "stop", "count": count, "depends_on": ["loop"]},
        "end": {"kind": "finish", "depends_on": ["after"]},
    }
    with directory() as store:
        file = configure(store, workflows=[{"name": "pure", "steps": steps}])
        return contestant([agentd(), "-c", str(file)], environment(store))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--venvs")
    given = parser.parse_args()
    results = contest(
        {
            "agentd": lambda: pure(given.steps),
            "LangGraph, sync": peer(given.venvs, "langgraph", "chain_langgraph.py", given.steps // 10),
        },
        given.rounds,
    )
    show(f"{given.steps:,} pure steps, medians of {given.rounds} rounds", results, COUNTERS)
    met = [
        aim("steps/s over LangGraph sync", ratio(results, "agentd", "LangGraph, sync"), ">=", 12),
        aim("flushes per 100 steps", results["agentd"]["flushes"] * 100, "<=", 1),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
