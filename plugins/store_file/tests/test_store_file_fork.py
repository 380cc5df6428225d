"""Children that are forked beside an open store end in every way and harm nothing; readers neither."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

from agentd_store_file import FileOptions, open_file

from agentd.cli.store import main as command
from agentd.testing.store_contract import PlainHost

# A process of its own. agentd forks its children before the store is opened; here the worst is done: they inherit it.
SUPERVISOR = """
import asyncio, gc, os, signal, sys
from agentd.testing.store_contract import PlainHost, envelope
from agentd_store_file import FileOptions, open_file

def end(n, store):
    if n % 4 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if n % 4 == 1:
        store._ledger.close()
        vars(store._ledger).clear()  # what the end of an interpreter does
        gc.collect()
    os._exit(n % 4)

async def main():
    async with open_file(FileOptions(path=sys.argv[1]), PlainHost({})) as store:
        for n in range(40):
            await asyncio.gather(*(store.put(f"k/{n}/{m}", 1, envelope(text="x" * 2000)) for m in range(5)))
            if os.fork() == 0:
                end(n, store)
            os.wait()
            await store.put(f"k/{n}/after", 1, envelope())
            print(n, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def test_children_and_readers_harm_nothing(tmp_path: Path) -> None:
    root = tmp_path / "state"
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR, str(root)], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    try:
        for line in supervisor.stdout:
            if int(line) == 20:
                assert command(["cat", "k/1/after", "--path", str(root)], {}) == 0
                shutil.copytree(root, tmp_path / "copy")
            if int(line) == 39:
                break
    finally:
        supervisor.kill()
        supervisor.wait()
        supervisor.stdout.close()
    assert command(["ls", "--path", str(root)], {}) == 0

    async def count(where: Path) -> int:
        async with open_file(FileOptions(path=str(where)), PlainHost({})) as store:
            return len(await store.list("k/"))

    assert asyncio.run(count(root)) == 240
    assert asyncio.run(count(tmp_path / "copy")) >= 120
