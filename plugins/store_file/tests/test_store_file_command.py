"""``agentd store`` over the file store, as a person runs it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from agentd_store_file import FileOptions, open_file

from agentd.cli.store import main
from agentd.errors import StoreCorrupt, StoreError, UsageError
from agentd.journal.journal import Journal, Settings
from agentd.testing.store_contract import PlainHost

ENV = {"AGENT_POD_NAME": "pod.1", "HOME": "/nonexistent"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "state"

    async def fill() -> None:
        host = PlainHost({})
        async with open_file(FileOptions(path=str(root)), host) as store:
            journal = Journal(store, Settings(instance="pod.1"), clock=host, log=host.log)
            await journal.open()
            await journal.write([("run", "r/1", {"status": "running"}), ("step", "r/1/a", {"x": "ü\ud800"})])
            await journal.close()

    asyncio.run(fill())
    return root


def store(root: Path, *args: str) -> int:
    return main([*args, "--path", str(root)], ENV)


def test_ls_and_cat(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert store(root, "ls") == 0
    keys = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert keys == ["agentd/pod%2E1/manifest/instance", "agentd/pod%2E1/run/r%2F1", "agentd/pod%2E1/step/r%2F1%2Fa"]
    assert store(root, "ls", "run") == 0
    assert capsys.readouterr().out.startswith("agentd/pod%2E1/run/r%2F1\t1\t2")
    for key in ("run/r/1", "agentd/pod%2E1/run/r%2F1"):
        assert store(root, "cat", key) == 0
        assert json.loads(capsys.readouterr().out)["state"] == {"status": "running"}
    with pytest.raises(StoreError, match="agentd store ls lists them"):
        store(root, "cat", "run/none")


def test_an_export_is_imported_whole(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert store(root, "export") == 0
    exported = capsys.readouterr().out
    file = tmp_path / "export"
    file.write_text(exported)
    assert store(tmp_path / "other", "import", str(file)) == 0
    assert "imported 3" in capsys.readouterr().out
    assert store(tmp_path / "other", "export") == 0
    assert capsys.readouterr().out == exported
    with pytest.raises(StoreError, match="not empty"):
        store(root, "import", str(file))


@pytest.mark.parametrize(
    "bad", ["{}", "[1]", "no json", '{"key":"a/b/c/d","envelope":{"v":2}}', '{"key":"k","envelope":1}']
)
def test_a_bad_line_imports_nothing(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: str) -> None:
    store(root, "export")
    file = tmp_path / "export"
    file.write_text(capsys.readouterr().out + bad + "\n")
    with pytest.raises(StoreError, match=r"line 4: .*nothing was imported"):
        store(tmp_path / "other", "import", str(file))
    assert store(tmp_path / "other", "export") == 0
    assert capsys.readouterr().out == ""


def test_verify(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert store(root, "verify") == 0
    assert capsys.readouterr().out == "ok: 3 records\n"

    async def spoil() -> None:
        async with open_file(FileOptions(path=str(root)), PlainHost({})) as opened:
            await opened.put("agentd/pod%2E1/run/x", 1, {"v": 9})

    asyncio.run(spoil())
    assert store(root, "verify") == 1
    assert "version 9" in capsys.readouterr().out
    (root / "data.db").write_bytes(bytes(4096))
    with pytest.raises(StoreCorrupt):
        store(root, "verify")


@pytest.mark.parametrize("args", [[], ["rm"], ["cat"], ["ls", "a", "b"], ["export", "x"]])
def test_usage(args: list[str]) -> None:
    with pytest.raises(UsageError, match="agentd store"):
        main(args, ENV)


def test_a_store_that_ends_with_its_process(root: Path) -> None:
    with pytest.raises(UsageError, match="ends with its process"):
        main(["ls", "--store.kind", "memory"], ENV)


def test_the_command_itself(root: Path) -> None:
    agentd = [sys.executable, "-m", "agentd", "store"]
    done = subprocess.run([*agentd, "verify", "--path", str(root)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok: 3 records\n", "")
    done = subprocess.run([*agentd, "ls", "--path", "/nonexistent"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no store in /nonexistent" in done.stderr and "Traceback" not in done.stderr
