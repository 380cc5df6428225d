"""The zygote, its children and the reaper, each in a real process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

DRIVER = """
import asyncio, json, os, signal, socket, sys, time
from agentd.children import frames
from agentd.children.linux import become_subreaper
from agentd.children.reaper import Reaper
from agentd.children.spawner import Spawner
from agentd.errors import ChildDied

become_subreaper()
spawner = Spawner.fork(entry="child_code:entry", warm="child_code:warm")

async def main():
    loop = asyncio.get_running_loop()
    reaper = Reaper(); reaper.start(loop)
    spawner.attach(loop, reaper); spawner.warm()
    try:
        return await scenario(spawner, reaper)
    finally:
        spawner.close(); reaper.stop()
"""

CHILD = """
import json, os, signal, socket, subprocess, sys, time
from agentd.children import frames
WARMED = []
def warm():
    WARMED.append(os.getpid())
def entry(sock):
    dec = frames.Decoder(); got = []
    while not got:
        got = dec.feed(sock.recv(65536))
    what = got[0]["t"]
    if what == "about":
        tasks = len(os.listdir("/proc/self/task"))
        sock.sendall(frames.encode({"t": "about", "pid": os.getpid(), "ppid": os.getppid(), "pgid": os.getpgid(0),
            "warmed": WARMED, "env": sorted(os.environ), "threads": tasks, "zygote_threads": got[0]["zygote"] and
            len(os.listdir(f"/proc/{got[0]['zygote']}/task")), "fds": len(os.listdir("/proc/self/fd"))}))
    elif what == "exit":
        os._exit(got[0]["code"])
    elif what == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN); sock.sendall(frames.encode({"t": "ready"})); time.sleep(600)
    elif what == "orphan":
        p = subprocess.Popen(["sleep", "300"]); sock.sendall(frames.encode({"t": "orphan", "pid": p.pid}))
"""


def run(tmp_path: Path, scenario: str, *, timeout: float = 40) -> dict[str, object]:
    (tmp_path / "child_code.py").write_text(CHILD)
    body = textwrap.dedent(scenario)
    (tmp_path / "drive.py").write_text(DRIVER + body + "\nprint(json.dumps(asyncio.run(main())))\n")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}", "SECRET_TOKEN": "s3cret"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "drive.py")], env=env, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_a_child_is_the_supervisors_own_with_a_clean_environment(tmp_path: Path) -> None:
    seen = run(
        tmp_path,
        """
        async def scenario(spawner, reaper):
            child = await spawner.spawn()
            child.send({"t": "about", "zygote": spawner.pid})
            about = await anext(child.frames())
            code = await child.exited
            return {**about, "me": os.getpid(), "code": code, "child": child.pid, "zygote": spawner.pid}
        """,
    )
    assert seen["pid"] == seen["child"] == seen["pgid"]
    assert seen["ppid"] == seen["me"]
    assert seen["code"] == 0
    assert seen["warmed"] == [seen["zygote"]]
    assert seen["threads"] == seen["zygote_threads"] == 1
    assert "SECRET_TOKEN" not in seen["env"]  # type: ignore[operator]
    assert seen["fds"] <= 6  # type: ignore[operator]


def test_exit_codes_are_each_childs_own(tmp_path: Path) -> None:
    seen = run(
        tmp_path,
        """
        async def scenario(spawner, reaper):
            async def one(code):
                child = await spawner.spawn()
                child.send({"t": "exit", "code": code})
                got = await child.exited
                child.close()
                return got
            wanted = [i % 10 for i in range(100)]
            return {"wanted": wanted, "got": await asyncio.gather(*map(one, wanted))}
        """,
    )
    assert seen["got"] == seen["wanted"]


def test_the_kill_ladder_ends_a_child_that_ignores_sigterm_and_what_it_started(tmp_path: Path) -> None:
    seen = run(
        tmp_path,
        """
        async def scenario(spawner, reaper):
            child = await spawner.spawn()
            child.send({"t": "hang"})
            await anext(child.frames())
            code = await child.stop(0.2)
            other = await spawner.spawn()
            other.send({"t": "orphan"})
            orphan = (await anext(other.frames()))["pid"]
            await other.exited
            await other.stop(1)
            gone = reaper.exited(orphan)
            return {"code": code, "orphan": await gone}
        """,
    )
    assert seen == {"code": -9, "orphan": -9}


def test_a_dead_zygote_is_replaced(tmp_path: Path) -> None:
    seen = run(
        tmp_path,
        """
        async def scenario(spawner, reaper):
            first = spawner.pid
            os.kill(first, signal.SIGKILL)
            await reaper.exited(first)
            tries = 0
            while True:
                try:
                    child = await spawner.spawn()
                    break
                except ChildDied:
                    tries += 1
            child.send({"t": "about", "zygote": spawner.pid})
            about = await anext(child.frames())
            await child.exited
            return {"replaced": spawner.pid != first, "tries": tries, "ppid": about["ppid"] == os.getpid()}
        """,
    )
    assert seen["replaced"] and seen["ppid"] and seen["tries"] <= 1  # type: ignore[operator]


def test_children_and_zygote_die_with_the_supervisor(tmp_path: Path) -> None:
    (tmp_path / "child_code.py").write_text(CHILD)
    body = """
async def scenario(spawner, reaper):
    child = await spawner.spawn()
    child.send({"t": "hang"})
    await anext(child.frames())
    print(json.dumps([spawner.pid, child.pid]), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    (tmp_path / "drive.py").write_text(DRIVER + body)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    p = subprocess.Popen([sys.executable, str(tmp_path / "drive.py")], env=env, stdout=subprocess.PIPE, text=True)
    assert p.stdout is not None
    pids = json.loads(p.stdout.readline())
    watched = [os.pidfd_open(pid) for pid in pids]
    p.kill()
    p.wait()
    p.stdout.close()
    import select

    for fd in watched:
        assert select.select([fd], [], [], 10)[0], "a process outlived the supervisor"
        os.close(fd)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5])
def test_frames_survive_any_cut(size: int) -> None:
    from agentd.children.frames import Decoder, encode

    sent = [{"t": "a", "text": "é😀\ud800" * 50}, {"t": "b"}]
    data = b"".join(map(encode, sent))
    decoder, got = Decoder(), []
    for i in range(0, len(data), size or len(data)):
        got += decoder.feed(data[i : i + (size or len(data))])
    assert got == sent
