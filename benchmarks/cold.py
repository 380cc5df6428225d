"""Cold starts as multiples of `python -c pass`: the probes, with ten small third-party plugins installed.

    .venv/bin/python benchmarks/cold.py [--runs 40] [--json]

Every command takes its turn in every round, and the least of its times counts: whatever else the machine does only
ever adds. Compare ratios of one run, never seconds of two. A virtual environment's python is needed: a global one may
have `.pth` files that add to every start.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLUGINS = 10

_MODULE = """
from typing import Literal
from pydantic import BaseModel, ConfigDict, Field
from agentd.hookspecs import hookimpl
from agentd.ports.{port} import {spec}

class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)
    url: str | None = Field(None, description="where it is")
    size: int = Field(10, ge=1, description="how many at once")
    mode: Literal["fast", "safe"] = Field("safe", description="how careful")

async def serve(*args):
    raise NotImplementedError

@hookimpl
def agentd_{hook}():
    return [{spec}(kind="sample-{n}", {options}=Options, {serve}=serve)]
"""

_LIBRARIES = "import yaml, importlib.metadata, stevedore.named, pluggy; from pydantic import BaseModel, Field"

_HOOKS = (
    {"port": "nodes", "spec": "StepSpec", "hook": "step_nodes", "options": "fields", "serve": "perform"},
    {"port": "nodes", "spec": "StartSpec", "hook": "start_nodes", "options": "fields", "serve": "arm"},
    {"port": "store", "spec": "StoreSpec", "hook": "stores", "options": "options", "serve": "open"},
    {"port": "auth", "spec": "AuthSpec", "hook": "auth_schemes", "options": "options", "serve": "make"},
)


def install(folder: Path) -> None:
    """Ten distributions in `folder`, each of one module that contributes one kind."""
    for n in range(PLUGINS):
        name = f"agentd_sample_{n}"
        (folder / f"{name}.py").write_text(_MODULE.format(n=n, **_HOOKS[n % len(_HOOKS)]))
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: agentd-sample-{n}\nVersion: 1.0\nRequires-Dist: agentd>=1.1,<2\n"
        )
        (info / "entry_points.txt").write_text(f"[agentd.plugins]\nsample-{n} = {name}\n")


def configuration() -> str:
    """200 lines as people write them: servers, limits, a store, and a workflow of plain steps."""
    lines = """\
config_version: "1"
agent:
  name: cold
  persona: |
    You are careful.
  instruction: keep the house in order
intelligence:
  endpoints: ["https://models.example/v1", "http://127.0.0.1:8080/v1"]
  model: large
  token: "{{secret:MODEL_TOKEN}}"
  timeout: 60s
store:
  kind: file
limits:
  max_runs: 4
  run: {steps: 200, tokens: 500000, deadline: 30m}
  step_timeout: 5m
lifecycle:
  drain_timeout: 20s
observability:
  log_level: info
vars:
  team: operations
mcp:
  default_timeout: 30s
  servers:
""".splitlines()
    for n in range(8):
        lines += f"""\
    - name: server-{n}
      endpoint: https://tools-{n}.example/mcp
      headers:
        X-Team: "{{{{config.team}}}}"
      allow: ["get_*", "list_*"]
      timeout: 20s""".splitlines()
    lines += """\
workflows:
  - name: tidy
    description: every hour, what is new
    steps:
      hourly: {kind: schedule, every: 1h}""".splitlines()
    before, n = "hourly", 0
    while len(lines) < 195:
        lines += f"""\
      step-{n}:
        kind: {("http", "mcp.tool", "assign", "agent")[n % 4]}
        depends_on: [{before}]""".splitlines()
        lines += {
            0: ["        url: https://service.example/items", "        query: {page: '{{inputs.page | 1}}'}"],
            1: [f"        server: server-{n % 8}", "        tool: get_item", "        args: {id: '{{run.id}}'}"],
            2: ["        value: '{{steps.step-0.output}}'"],
            3: ["        instruction: say what is new", "        timeout: 2m"],
        }[n % 4]
        before, n = f"step-{n}", n + 1
    lines += [f"      end: {{kind: finish, depends_on: [{before}], output: done}}"]
    lines += ["# the end"] * (200 - len(lines))
    return "\n".join(lines) + "\n"


def least(commands: dict[str, list[str]], environ: dict[str, str], runs: int) -> dict[str, tuple[float, float]]:
    """Seconds on the clock and of CPU time of each command, the least of `runs` rounds."""
    best = dict.fromkeys(commands, (float("inf"), float("inf")))
    for _ in range(runs):
        for name, command in commands.items():
            began, spent = time.perf_counter(), _cpu()
            done = subprocess.run(command, env=environ, capture_output=True, check=False)
            took = time.perf_counter() - began, _cpu() - spent
            best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
            if done.returncode:
                raise SystemExit(f"{name}: exit {done.returncode}: {done.stderr.decode()[-2000:]}")
    return best


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder))
        file = Path(folder, "agentd.yaml")
        file.write_text(configuration())
        bare = Path(folder, "bare.yaml")
        bare.write_text(configuration().partition("workflows:")[0])
        environ = {"PATH": os.environ["PATH"], "HOME": folder, "PYTHONPATH": folder, "LC_ALL": "C.UTF-8"}
        python = sys.executable
        agentd = [str(Path(python).with_name("agentd"))]
        modules = "import " + ", ".join(f"agentd_sample_{n}" for n in range(PLUGINS))
        times = least(
            {
                "python -c pass": [python, "-c", "pass"],
                "the libraries it needs": [python, "-c", _LIBRARIES],
                "the libraries and the ten plugins": [python, "-c", f"{_LIBRARIES}; {modules}"],
                "agentd --version": [*agentd, "--version"],
                "agentd --help": [*agentd, "--help"],
                "agentd --validate-config, no workflow": [*agentd, "--validate-config", "-c", str(bare)],
                "agentd --validate-config, 200 lines": [*agentd, "--validate-config", "-c", str(file)],
            },
            environ,
            given.runs,
        )
    wall, cpu = times["python -c pass"]
    rows = {
        n: {"ms": round(w * 1e3, 1), "x": round(w / wall, 2), "cpu_ms": round(c * 1e3, 1), "cpu_x": round(c / cpu, 2)}
        for n, (w, c) in times.items()
    }
    if given.json:
        print(json.dumps({"load": os.getloadavg()[0], "runs": given.runs, "commands": rows}))
        return 0
    print(f"least of {given.runs} rounds, load {os.getloadavg()[0]:.1f}")
    for name, row in rows.items():
        print(f"{name:40} {row['ms']:7.1f} ms {row['x']:6.1f} x   cpu {row['cpu_ms']:7.1f} ms {row['cpu_x']:6.1f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
