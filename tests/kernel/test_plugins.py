"""Broken distributions: listed with a reason, isolated, and no trouble to the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = """
    from agentd.hookspecs import hookimpl
    from agentd.ports.schedule import ScheduleRuleSpec

    @hookimpl
    def agentd_schedule_rules():
        return [ScheduleRuleSpec(field={field!r}, parse=lambda text, zone: None)]
"""

Add = Callable[..., None]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def add(site: Path) -> Add:
    """Put a distribution into the temporary site directory."""

    def add(name: str, code: str | None = None, *, value: str | None = None, metadata: str | None = None) -> None:
        module = name.replace("-", "_")
        info = site / f"{module}-0.1.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
        info.joinpath("entry_points.txt").write_text(f"[agentd.plugins]\n{name} = {value or module}\n")
        if code is not None:
            site.joinpath(f"{module}.py").write_text(textwrap.dedent(code))

    return add


def python(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=50, check=True
    )


def listing(site: Path) -> tuple[dict[str, Any], str]:
    """``agentd plugins --json``: the plugins by name, and what came on stderr. The good one must have loaded."""
    done = python(site, "import sys; from agentd.cli.plugins import main; sys.exit(main(['--json'], {}))")
    by_name = {p["name"]: p for p in json.loads(done.stdout)["plugins"]}
    assert by_name["good"]["state"] == "loaded", by_name["good"]
    assert by_name["good"]["contributes"] == {"schedule_rules": ["good"]}
    return by_name, done.stderr


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "stale": ({}, "its module stale does not exist"),
    "needs-more": ({"code": "import absent_library"}, "No module named 'absent_library'"),
    "raises": ({"code": "raise ImportError('no libfoo')"}, "no libfoo"),
    "asserts": ({"code": "assert False, 'never'"}, "AssertionError: never"),
    "exits": ({"code": "import sys; sys.exit(3)"}, "SystemExit: 3"),
    "interrupts": ({"code": "raise KeyboardInterrupt"}, "KeyboardInterrupt"),
    "malformed": ({"code": "", "value": "a b:c"}, "the entry point is not <module>[:<object>]"),
    "no-object": ({"code": "", "value": "no_object:there"}, "there"),
    "no-hooks": ({"code": "x = 1"}, "it implements no hook"),
    "wrong-argument": (
        {"code": GOOD.format(field="w").replace("rules()", "rules(config)")},
        "Argument(s) {'config'} are declared in the hookimpl but can not be found in the hookspec",
    ),
    "unknown-hook": (
        {"code": "from agentd.hookspecs import hookimpl\n@hookimpl\ndef agentd_storez(): return []"},
        "agentd_storez",
    ),
    "hook-raises": ({"code": GOOD.format(field="h").replace("return", "1 / 0; return")}, "ZeroDivisionError"),
    "hook-exits": ({"code": GOOD.format(field="h").replace("return", "raise SystemExit(3); return")}, "SystemExit: 3"),
    "hook-gives-no-spec": ({"code": GOOD.format(field="h").replace("return [", "return [1] or [")}, "it must give"),
    "hook-gives-no-list": ({"code": GOOD.format(field="h").replace("return [", "return 5 or [")}, "not iterable"),
    "twice": ({"code": GOOD.format(field="t").replace("None)]", "None)] * 2")}, "'t' twice"),
    "other-agentd": (
        {"code": "", "metadata": "Name: other-agentd\nVersion: 0.1\nRequires-Dist: agentd (>=2,<3)\n"},
        "it needs agentd>=2,<3",
    ),
    "old-api": ({"code": "from agentd.api import Plugin"}, "No module named 'agentd.api'"),
    "nameless": ({"code": "", "metadata": "Metadata-Version: 2.1\nVersion: 0.1\n"}, "its metadata has no Name"),
    "versionless": ({"code": "", "metadata": "Name: versionless\n"}, "its metadata has no Version"),
    "no-metadata": ({"code": "", "metadata": "\n"}, "its metadata has no Name"),
}


def test_every_broken_distribution_is_listed_with_its_reason(site: Path, add: Add) -> None:
    for name, (how, _) in BROKEN.items():
        add(name, **how)
    add("good", GOOD.format(field="good"))
    by_name, stderr = listing(site)
    for name, (_, reason) in BROKEN.items():
        assert by_name[name]["state"] == "failed", name
        assert reason in by_name[name]["reason"], name
        assert "\n" not in by_name[name]["reason"]
    assert "Traceback" not in stderr


def test_unreadable_entry_points_are_reported(site: Path, add: Add) -> None:
    add("good", GOOD.format(field="good"))
    add("bent")
    site.joinpath("bent-0.1.dist-info", "entry_points.txt").write_text("[agentd.plugins]\nno equals sign\n")
    by_name, _ = listing(site)
    assert by_name["bent"]["state"] == "failed"
    assert by_name["bent"]["reason"]


def test_extras_of_an_entry_point_are_no_obstacle(site: Path, add: Add) -> None:
    add("good", GOOD.format(field="good"), value="good [fast]")
    itself = "\nimport sys\nplugin = sys.modules[__name__]\n"
    add("object", textwrap.dedent(GOOD.format(field="o")) + itself, value="object:plugin[fast]")
    by_name, _ = listing(site)
    assert by_name["object"]["contributes"] == {"schedule_rules": ["o"]}


def test_what_plugins_print_is_told_and_never_reaches_stdout(site: Path, add: Add) -> None:
    noise = "import os, sys\nprint('hello')\nos.write(1, b'raw')\nos.system('echo shell')\n"
    noise += "sys.__stdout__.write('kept')\nsys.stdout.buffer.write(b'bytes')\n"
    add("good", noise + textwrap.dedent(GOOD.format(field="good")).replace("return", "print('called'); return"))
    add("quiet", GOOD.format(field="quiet"))
    _, stderr = listing(site)  # which parses all of stdout as JSON
    (line,) = stderr.splitlines()
    told = json.loads(line)
    assert told["event"] == "config.warning"
    assert told["msg"].startswith("plugin good (good 0.1, entry point good = good) printed while it loaded: ")
    for text in ("hello", "raw", "shell", "kept", "bytes", "called"):
        assert text in told["msg"]


def test_whoever_keeps_stdout_prints_to_stderr_afterwards(site: Path, add: Add) -> None:
    add("good", "import sys\nout = sys.stdout\n" + textwrap.dedent(GOOD.format(field="good")))
    code = "from agentd.plugins import load; load(); import good; print('later', file=good.out, flush=True)"
    done = python(site, code + "; print('result')")
    assert (done.stdout, done.stderr) == ("result\n", "later\n")


def test_a_slow_plugin_is_named_while_it_loads(site: Path, add: Add) -> None:
    add("good", GOOD.format(field="good"))
    add("slow", "import time\ntime.sleep(1.8)\n" + textwrap.dedent(GOOD.format(field="slow")))
    by_name, stderr = listing(site)
    assert by_name["slow"]["state"] == "loaded"
    (line,) = stderr.splitlines()
    assert json.loads(line)["event"] == "config.warning"
    assert "plugin slow (slow 0.1, entry point slow = slow)" in json.loads(line)["msg"]


def test_one_name_of_two_distributions_is_neither(site: Path, add: Add) -> None:
    add("good", GOOD.format(field="good"))
    add("one", GOOD.format(field="one"))
    add("two", GOOD.format(field="two"))
    site.joinpath("two-0.1.dist-info", "entry_points.txt").write_text("[agentd.plugins]\none = two\n")
    done = python(site, "from agentd.plugins import load; print([(p.dist, p.reason) for p in load().failed])")
    assert "('one', 'the name one is claimed by one 0.1 and two 0.1; uninstall one')" in done.stdout
    assert "('two', 'the name one is claimed" in done.stdout


def explain(site: Path, kind: str, arguments: str = "") -> str:
    """What the configuration is told when it needs the schedule rule `kind`."""
    code = f"from agentd.plugins import load; p = load({arguments}); print(p.missing('schedule_rules', {kind!r}))"
    return python(site, code).stdout.strip()


def test_a_kind_of_two_plugins_is_contested_and_the_rest_stays(site: Path, add: Add) -> None:
    add("good", GOOD.format(field="good"))
    add("one", GOOD.format(field="same"))
    add("two", GOOD.format(field="same"))
    by_name, _ = listing(site)
    assert by_name["one"]["state"] == by_name["two"]["state"] == "loaded"
    assert explain(site, "same") == (
        "the schedule rule 'same' is contributed by plugin one (one 0.1) and plugin two (two 0.1); "
        "switch one off in plugins.disabled"
    )
    assert "'same'" not in explain(site, "x", "disabled=['two']").partition("installed:")[0]


def test_missing_names_distribution_entry_point_and_reason(site: Path, add: Add) -> None:
    add("broken", "import absent_library")
    told = explain(site, "lunar")
    assert told.startswith("there is no schedule rule 'lunar'; installed: ")
    assert "plugin broken (broken 0.1, entry point broken = broken) failed to load: No module named" in told


def test_allow_and_disabled_decide_before_anything_is_imported(site: Path, add: Add) -> None:
    add("loud", "open(__file__ + '.ran', 'w')")
    python(site, "from agentd.plugins import load; load(['cron']); load(disabled=['loud'])")
    assert not site.joinpath("loud.py.ran").exists()
    python(site, "from agentd.plugins import load; load(['loud'])")
    assert site.joinpath("loud.py.ran").exists()


def test_nothing_is_left_behind(site: Path, add: Add) -> None:
    """No thread (the process is about to fork), no changed signal, no cache of stevedore's in the home."""
    add("good", GOOD.format(field="good"))
    code = """if True:
        import os, signal, threading
        from agentd.plugins import load
        load()
        assert threading.active_count() == 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        print("fine")
    """
    environ = {**os.environ, "PYTHONPATH": str(site), "HOME": str(site), "XDG_CACHE_HOME": str(site / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "fine\n"
    assert not (site / "cache").exists()


def test_closed_stdout_is_no_obstacle(site: Path, add: Add) -> None:
    add("good", GOOD.format(field="good"))
    code = "import os; os.close(1)\nfrom agentd.plugins import load\nassert 'good' in load().schedule_rules"
    assert python(site, code).returncode == 0
