"""What the benchmarks share: counters around a piece of work, rounds in turn, medians, and aims beside them.

Only the standard library: every contestant, agentd's plugin among them, imports this in its own interpreter and prints
the line of its own :class:`Meter`, so that all are measured by the same code.

Seconds depend on what else the machine does (one other busy process makes a flush cost twenty times as much), so
contestants take turns in the same minutes, only medians and ratios of one run count, `foreign` says which share of the
processors others took, and what must hold on any machine is a count: flushes, bytes, wakes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TICK = os.sysconf("SC_CLK_TCK")
Line = dict[str, Any]
"""What one contestant did in one round: numbers by name."""

# --- counters --------------------------------------------------------------------------------------------------------


def device(path: Path) -> Path | None:
    """The counters of the block device that holds `path`; None for a file system in memory."""
    number = path.stat().st_dev
    found = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not found.exists():
        return None
    found = found.resolve()
    whole = found.parent if (found / "partition").exists() else found  # partitions count no flushes of their own
    return whole / "stat"


def number(file: str, name: str) -> int:
    """The number that a file of `/proc` gives `name`."""
    found = re.search(rf"^{name}:\s+(\d+)", Path("/proc", file).read_text(), re.M)
    return int(found[1]) if found else 0


def flushes(stat: Path | None) -> int:
    """Flush requests that the device has completed."""
    return int(stat.read_text().split()[15]) if stat is not None else 0


def written(pid: int | str = "self") -> int:
    """Bytes that a process caused to be written to devices."""
    return number(f"{pid}/io", "write_bytes")


def busy() -> float:
    """Processor seconds of everybody so far."""
    v = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(v) - v[3] - v[4]) / TICK


def spent(pid: int) -> float:
    """Processor seconds of a process."""
    v = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(v[11]) + int(v[12])) / TICK


def tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(entry.read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def over(pid: int, ask: Callable[[int], float]) -> float:
    """The sum of `ask` over the tree of a process; what is gone counts nothing."""
    total = 0.0
    for one in tree(pid):
        with contextlib.suppress(OSError, TypeError):
            total += ask(one)
    return total


def pss(pid: int) -> float:
    """MB of memory of a process, shared pages by their share."""
    return number(f"{pid}/smaps_rollup", "Pss") / 1024


def switches(pid: int) -> int:
    """Times that a thread of the process went to sleep by itself: each is a wake."""
    return sum(number(f"{task}/status", "voluntary_ctxt_switches") for task in Path(f"/proc/{pid}/task").iterdir())


class Meter:
    """Counters of the process that makes it (its ended children and `pids` count too), from :meth:`start` on."""

    def __init__(self, store: Path | str, pids: Sequence[int] = ()) -> None:
        """`store` is a directory on the device that is watched; `pids` are servers that work for this process."""
        self._device, self._pids = device(Path(store)), pids

    def _read(self) -> tuple[float, float, int, int, float]:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(u.ru_utime + u.ru_stime for u in used) + sum(map(spent, self._pids))
        wrote = sum(map(written, self._pids or ("self",)))
        return time.perf_counter(), own, flushes(self._device), wrote, busy()

    def start(self) -> Meter:
        self._began = self._read()
        return self

    def stop(self, count: int) -> Line:
        """Per one of `count`: rate, own CPU, flushes, bytes written; `foreign` CPU; `peak_mb`."""
        seconds, own, flushed, wrote, all_busy = (b - a for a, b in zip(self._began, self._read(), strict=True))
        peak = sum(number(f"{pid}/status", "VmHWM") for pid in self._pids or ("self",))
        return {
            "rate": count / seconds,
            "cpu_us": own / count * 1e6,
            "flushes": flushed / count,
            "kb": wrote / count / 1024,
            "peak_mb": peak / 1024,
            "foreign": max(0.0, all_busy - own) / seconds / (os.cpu_count() or 1),
        }


_MARK = "measured "


def emit(line: Line) -> None:
    """Print the line of a contestant, for :func:`contestant` to read."""
    print(f"\n{_MARK}{json.dumps(line)}", flush=True)


# --- contestants -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def directory(*, tmpfs: bool = False) -> Iterator[Path]:
    """A new directory: on the disk of the temporary directory, or in memory."""
    with tempfile.TemporaryDirectory(prefix="agentd-bench-", dir="/dev/shm" if tmpfs else None) as made:
        if (device(Path(made)) is None) != tmpfs:
            raise SystemExit(f"{made} is {'on a disk' if tmpfs else 'in memory'}: set TMPDIR to one that is not")
        yield Path(made)


def python_of(venvs: str | None, name: str) -> str | None:
    """The interpreter of a peer's virtual environment, None where it was not given."""
    python = Path(venvs or "/nowhere", name, "bin", "python")
    return str(python) if python.exists() else None


def environment(store: Path, **more: str) -> dict[str, str]:
    """For a contestant: nothing of the caller's but the path; state and home in `store`."""
    return {
        "PATH": os.environ["PATH"], "HOME": str(store), "LC_ALL": "C.UTF-8", "BENCH_DATA": str(store),
        "PYTHONPATH": f"{HERE}:{HERE / 'plugin'}", "PYTHONWARNINGS": "ignore", "DO_NOT_TRACK": "1", **more,
    }  # fmt: skip


def agentd() -> str:
    """The command of the environment that runs this."""
    return str(Path(sys.executable).with_name("agentd"))


def configure(folder: Path, /, **sections: Any) -> Path:
    """A configuration file (YAML is a superset of JSON) with the state beside it, quiet, for a job."""
    document = {
        "config_version": "1", "agent": {"name": "bench"},
        "store": {"kind": "file", "file": {"path": str(folder / "state")}},
        "lifecycle": {"run_until": "idle"}, "observability": {"log_level": "warn"}, **sections,
    }  # fmt: skip
    file = folder / "agentd.yaml"
    file.write_text(json.dumps(document))
    return file


def contestant(command: Sequence[str], environ: Mapping[str, str], timeout: float = 600) -> Line:
    """Run a command; the line that it emitted. Raises SystemExit with what it said if it failed."""
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=timeout, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return dict(json.loads(lines[-1].removeprefix(_MARK)))


def peer(venvs: str | None, venv: str, script: str, *args: object, tmpfs: bool = False) -> Callable[[], Line] | None:
    """A contestant of ``peers/``, None where its environment was not given; no `venv`: the interpreter of this."""
    python = sys.executable if not venv else python_of(venvs, venv)
    if python is None:
        return None

    def run() -> Line:
        with directory(tmpfs=tmpfs) as store:
            return contestant([python, str(HERE / "peers" / script), *map(str, args)], environment(store))

    return run


# --- rounds and what they say ----------------------------------------------------------------------------------------


def contest(entries: Mapping[str, Callable[[], Line] | None], rounds: int) -> dict[str, Line]:
    """Let the entries take turns; of each the medians of its rounds. Those that are None are left out."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # contestants and directories go with this process
    lines: dict[str, list[Line]] = {name: [] for name, run in entries.items() if run is not None}
    for name in entries.keys() - lines.keys():
        print(f"({name}: no environment in --venvs, left out)", file=sys.stderr)
    for _ in range(rounds):
        for name, run in entries.items():
            if run is not None:
                lines[name].append(run())
    return {name: {k: statistics.median(line[k] for line in of) for k in of[0]} for name, of in lines.items()}


def table(title: str, results: Mapping[str, Line], formats: Mapping[str, str]) -> None:
    """Print results in columns; `formats` maps the name of a number to its format.

    `cpu_x` is the processor time of each over that of the first: what is left to compare on a busy machine.
    """
    width = max(map(len, results))
    if "cpu_us" in formats:
        first = next(iter(results.values()))["cpu_us"]
        results = {name: {**line, "cpu_x": line["cpu_us"] / first} for name, line in results.items()}
        formats = {**formats, "cpu_x": ".1f"}
    print(f"\n{title}, load {os.getloadavg()[0]:.1f}")
    print(" " * width, *(f"{name:>10}" for name in formats))
    for name, line in results.items():
        cells = (f"{format(line[n], f) if n in line else '':>10}" for n, f in formats.items())
        print(f"{name:{width}}", *cells)


COUNTERS = {"rate": ",.0f", "cpu_us": ",.0f", "flushes": ".3f", "kb": ".1f", "peak_mb": ".0f", "foreign": ".0%"}
"""The columns of a :class:`Meter`."""


def aim(what: str, value: float | None, relation: str, bound: float) -> bool:
    """Print a ratio or count beside what it should be; whether it is. None (no such peer here) is only told."""
    if value is None:
        print(f"  {'-':>9}   aim {relation} {bound:g}: {what}")
        return True
    met = value >= bound if relation == ">=" else value <= bound
    print(f"  {value:9.3g}   aim {relation} {bound:g}: {what}{'' if met else '   <-- not met'}")
    return met


def ratio(results: Mapping[str, Line], one: str, other: str, key: str = "rate") -> float | None:
    """`one` over `other`, None when one of them took no part."""
    if one not in results or other not in results:
        return None
    return float(results[one][key] / results[other][key])
