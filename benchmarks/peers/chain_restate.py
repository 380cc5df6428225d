"""Restate: its server and a Python service beside it, COUNT steps in one invocation. Arguments: SERVER COUNT."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from measure import Meter, emit, tree

root, (binary, count) = os.environ["BENCH_DATA"], sys.argv[1:3]
INGRESS, ADMIN, SERVICE = 8080, 9070, 9080  # the server's own: they are not chosen here
quiet = {"RESTATE_DISABLE_TELEMETRY": "true", "RESTATE_LOG_FILTER": "error", "NO_PROXY": "127.0.0.1"}
server = [
    binary,
    "--no-logo",
    "--base-dir",
    root,
    "--node-name",
    "n1",
    "--listen-mode",
    "tcp",
    "--bind-ip",
    "127.0.0.1",
]
service = [sys.executable, "-m", "hypercorn", "--bind", f"127.0.0.1:{SERVICE}", "restate_service:app"]


def wait_for(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.05)
    raise SystemExit(f"port {port} never opened")


def post(port: int, path: str, value: object) -> object:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(value).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.loads(answer.read() or b"null")


environ = {**os.environ, **quiet, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{Path(__file__).parent}"}
with contextlib.ExitStack() as stack:
    pids = []
    for command in (server, service):
        process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        pids.append(process.pid)
    for port in (INGRESS, ADMIN, SERVICE):
        wait_for(port)
    post(ADMIN, "/deployments", {"uri": f"http://127.0.0.1:{SERVICE}", "force": True})
    for _ in range(100):
        try:
            post(INGRESS, "/bench/chain", 5)
            break
        except OSError:
            time.sleep(0.1)
    meter = Meter(root, [one for pid in pids for one in tree(pid)]).start()
    post(INGRESS, "/bench/chain", int(count))
    emit(meter.stop(int(count)))
