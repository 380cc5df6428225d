"""The zygote: a single-threaded, blocking process that imported what a turn needs and forks a child per request.

Only a process with one thread may fork safely, so the supervisor forks the zygote before it starts a thread or a
loop, and every child comes from the zygote. It holds no store, no listener and a scrubbed environment, and dies with
the supervisor. The fork is double: the child's parent becomes the supervisor (the subreaper), which then waits for it.

Control messages (one datagram each, JSON): to the zygote ``{"t": "warm", "how": {…}}`` and ``{"t": "spawn"}`` with the
child's end of a socket pair attached; from it, in order, ``{"t": "spawned", "pid": n}`` or
``{"t": "failed", "msg": …}``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from agentd.children.linux import die_with_parent, forbid_new_privileges

Entry = Callable[[socket.socket], None]
"""What a child runs: it gets its end of the socket pair and returns when it is done."""

_MESSAGE = 4096
KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "HOME")
"""The environment that is left to the zygote: nothing a secret is passed in."""


def serve(control: socket.socket, supervisor: int, warm: Callable[..., None], entry: Entry) -> NoReturn:
    """Be the zygote until the supervisor closes `control`. Never returns."""
    code = 0
    try:
        _detach(supervisor)
        while True:
            data, fds, _, _ = socket.recv_fds(control, _MESSAGE, 1)
            if not data:
                break
            message = json.loads(data)
            if message["t"] == "warm":
                warm(**message.get("how", {}))
                # What is alive now is shared by every child: keep the collector from touching (and copying) it.
                gc.collect()
                gc.freeze()
            else:
                _spawn(control, fds[0], supervisor, entry)
    except BaseException:
        code = 1
    os._exit(code)


def _detach(supervisor: int) -> None:
    die_with_parent()
    if os.getppid() != supervisor:
        os._exit(0)
    os.setsid()
    # A terminal's Ctrl-C and a drain are the supervisor's to handle; it ends us by closing the control socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        forbid_new_privileges()
    for name in [n for n in os.environ if n not in KEPT]:
        del os.environ[name]
    # A child must not keep the result's pipe open, and its log lines travel as frames.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def _spawn(control: socket.socket, fd: int, supervisor: int, entry: Entry) -> None:
    read, write = os.pipe()
    try:
        middle = os.fork()
    except OSError as e:
        os.close(fd)
        os.close(read)
        os.close(write)
        control.send(json.dumps({"t": "failed", "msg": str(e)}).encode())
        return
    if middle == 0:
        try:
            os.close(read)
            me = os.getpid()
            pid = os.fork()
            if pid == 0:
                os.close(write)
                control.close()
                _be_child(fd, me, supervisor, entry)
            os.write(write, str(pid).encode())
        finally:
            os._exit(0)
    os.close(fd)
    os.close(write)
    pid_text = os.read(read, 32)
    os.close(read)
    os.waitpid(middle, 0)
    reply = {"t": "spawned", "pid": int(pid_text)} if pid_text else {"t": "failed", "msg": "cannot fork"}
    control.send(json.dumps(reply).encode())


def _be_child(fd: int, middle: int, supervisor: int, entry: Entry) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        # The parent-death signal names the parent at the time of the call: wait until that is the supervisor.
        while os.getppid() == middle:
            time.sleep(0.0002)
        die_with_parent()
        if os.getppid() != supervisor:
            os._exit(1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        entry(socket.socket(fileno=fd))
        code = 0
    finally:
        os._exit(code)


def main(argv: list[str]) -> NoReturn:
    """``python -m agentd.children.zygote FD SUPERVISOR ENTRY WARM``: a zygote of its own."""
    fd, supervisor, entry, warm = int(argv[0]), int(argv[1]), argv[2], argv[3]
    serve(socket.socket(fileno=fd), supervisor, load(warm), load(entry))


def load(name: str) -> Callable[..., None]:
    """A function named as ``module:function``, imported on its first call, so that a cold zygote stays small."""

    def call(*args: object, **how: object) -> None:
        import importlib

        module, _, attribute = name.partition(":")
        getattr(importlib.import_module(module), attribute)(*args, **how)

    return call


if __name__ == "__main__":
    main(sys.argv[1:])
