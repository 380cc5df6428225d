"""``agentd workflow test FILE --script MOCK.yaml``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentd.cli.output import emit
from agentd.cli.workflow.sources import chosen, plan_of
from agentd.cli.workflow.story import told
from agentd.cli.workflow.words import Words, read
from agentd.engine.decision import Wait
from agentd.engine.plan import Plan
from agentd.engine.starts import InputsInvalid
from agentd.errors import ConfigError, UsageError
from agentd.runtime.outcome import Ended, code_of
from agentd.runtime.rehearsal.play import Line, Play
from agentd.runtime.rehearsal.script import Script, load
from agentd.runtime.rehearsal.world import World

_FLAGS = {
    "script": True,
    "input": True,
    "inputs": True,
    "payload": True,
    "workflow": True,
    "start": True,
    "json": False,
}


def main(args: list[str]) -> int:
    """Tell what happens, and exit as a job would. Raises ConfigError for a script without an answer."""
    words = read(args, _FLAGS, "test")
    if len(words.files) > 1:
        raise UsageError("agentd workflow test takes one FILE")
    found = chosen(words.files[0], words.last("workflow"))
    if len(found) > 1:
        raise UsageError(
            f"{words.files[0]} holds several workflows; choose with --workflow {'|'.join(s.name for s in found)}"
        )
    script = load(file) if (file := words.last("script")) is not None else Script()
    play = _play(plan_of(found[0]), script, words)
    lines: list[Line] = []
    for line in play.lines():
        lines.append(line)
        if "json" not in words.flags and (text := told(line)):
            emit(text + "\n")
    if play.finished is None:
        raise ConfigError(findings=[(wait.entry, _waiting(wait)) for wait in play.waiting()])
    end = play.finished
    ended = Ended(run="rehearsal", workflow=play.plan.name, status=end.status, output=end.output, error=end.err)
    if "json" in words.flags:
        whole = {"status": end.status, "output": end.output, "err": end.err, "seconds": play.now - play.run.started,
                 "events": list(map(_event, lines))}  # fmt: skip
        code = emit(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    else:
        code = emit("".join(f"{line}\n" for line in _ending(ended)))
    return code or code_of(ended)


def _play(plan: Plan, script: Script, words: Words) -> Play:
    node = words.last("start") or next(iter(plan.starts))
    if node not in plan.starts:
        raise UsageError(f"there is no start node {node}; there are: {', '.join(plan.starts)}")
    inputs, payload = words.inputs(), words.json("payload")
    payload = script.payload if payload is None else payload
    given = script.inputs if inputs is None else {**(script.inputs or {}), **inputs}
    try:
        return Play(plan, World(script), node, payload, given)
    except InputsInvalid as fault:
        raise ConfigError(findings=[("inputs", fault.message)]) from None


def _waiting(wait: Wait) -> str:
    """What would end a wait that nothing ends."""
    name = wait.on.get("name")
    section, what = ("signals", name) if wait.on.get("on") == "signal" else ("steps", wait.entry)
    return f"the run waits here without a timeout; add {section}: {{{what}: {{output: …}}}}"


def _event(line: Line) -> dict[str, Any]:
    return {"at": line.at, "event": line.event, "step": line.step, **line.facts}


def _ending(ended: Ended) -> Iterator[str]:
    error = f": {ended.error.get('step', '')} {ended.error['message']}" if ended.error else ""
    yield f"{ended.status}{error}"
    if ended.output is not None:
        yield json.dumps(ended.output, ensure_ascii=False, indent=2)
