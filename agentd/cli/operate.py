"""``agentd run|status|cancel|signal|answer|pause|resume``: ask the daemon that holds a state directory.

The directory is found as the daemon found it, by the same configuration (``-c FILE``, environment, flags), or is named
with ``--state-dir DIR``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentd.cli import standing
from agentd.cli.output import emit, printed, tell
from agentd.errors import EXIT_FAILED, EXIT_OK, AgentdError, ConfigError, UsageError

USAGE = """usage: agentd run WORKFLOW [--input NAME=VALUE]... [--inputs JSON] [--id ID] [--key KEY] [--wait]
       agentd status [RUN]
       agentd cancel RUN [--reason TEXT]
       agentd signal NAME [--run RUN] [--payload JSON]
       agentd answer [TASK --value VALUE]
       agentd pause [RUN]
       agentd resume [RUN]

Each asks the daemon of this configuration (-c FILE and every other configuration flag), or of --state-dir DIR.

  --json          print the answer as JSON
  --input         one input; VALUE is read as JSON where it is JSON, else as text
  --id            the run's id; the same id again is the same run
  --key           an idempotency key; the same key again is the same run
  --value         the answer; read as JSON where it is JSON, else as text. Without TASK: the open questions
  --wait          print the run's output and exit as a job with this result would
"""


class Verb(NamedTuple):
    """A command: how many operands it takes, its own flags (true: with a value), and what to do."""

    least: int
    most: int
    flags: Mapping[str, bool]
    act: Callable[[Asked], int]


class Asked(NamedTuple):
    """A command line, read. `flags` holds the values of each flag in order."""

    operands: list[str]
    flags: dict[str, list[str]]
    rest: list[str]
    environ: Mapping[str, str]

    def last(self, flag: str) -> str | None:
        return self.flags[flag][-1] if flag in self.flags else None

    def operand(self) -> str | None:
        return self.operands[0] if self.operands else None


def main(args: list[str], environ: Mapping[str, str]) -> int:
    """Do ``args[0]``; its exit code. Raises UsageError, ConfigError."""
    command, words = args[0], args[1:]
    if any(word in ("-h", "--help") for word in words):
        return emit(USAGE)
    verb = _VERBS[command]
    asked = _read(command, verb, words, environ)
    if not verb.least <= len(asked.operands) <= verb.most:
        raise UsageError(f"agentd {command}: wrong number of arguments; agentd {command} --help explains them")
    return verb.act(asked)


def _read(command: str, verb: Verb, words: list[str], environ: Mapping[str, str]) -> Asked:
    """The command's own flags and operands; every other flag, with the word behind it, is the configuration's."""
    own = {**verb.flags, "json": False, "state-dir": True}
    asked, left = Asked([], {}, [], environ), list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("-"):
            asked.operands.append(word)
        elif word.startswith("--") and name in own:
            if not own[name] and equals:
                raise UsageError(f"agentd {command}: --{name} takes no value")
            if own[name] and not equals:
                if not left:
                    raise UsageError(f"agentd {command}: --{name} needs a value")
                value = left.pop(0)
            asked.flags.setdefault(name, []).append(value)
        else:
            asked.rest.append(word)
            if not equals and left and not left[0].startswith("-"):
                asked.rest.append(left.pop(0))
    return asked


def _state(asked: Asked) -> Path:
    """The state directory of the daemon that is meant."""
    if (named := asked.last("state-dir")) is not None:
        return Path(named)
    from agentd.config.load import load

    loaded = load(asked.rest, asked.environ)
    if loaded.document is None:
        raise ConfigError(findings=[(finding.path, finding.msg) for finding in loaded.errors])
    section = loaded.document.store
    kind = section.kind or "file"
    spec = loaded.plugins.stores.get(kind)
    if spec is None:
        raise ConfigError(findings=[("store.kind", loaded.plugins.missing("stores", kind))])
    path = spec.describe(getattr(section, kind, None) or spec.options()).get("path") if spec.describe else None
    if not spec.durable or not isinstance(path, str):
        raise UsageError(f"a store of the kind {kind} has no directory to find its daemon by; name it with --state-dir")
    return Path(path)


def _ask(asked: Asked, op: str, **args: Any) -> dict[str, Any]:
    """The value of one operation. Raises Told for an answer that is none, UsageError when nobody answers."""
    from agentd.runtime.ask import ask

    reply = ask(_state(asked), op, {name: value for name, value in args.items() if value is not None})
    if reply["ok"]:
        value: dict[str, Any] = reply["value"]
        return value
    error = reply["error"]
    raise Told(error["message"], code=error["code"], exit=reply["exit"])


class Told(AgentdError):
    """What the daemon answered instead of a value."""

    def __init__(self, message: str, *, code: str, exit: int) -> None:
        super().__init__(message)
        self.code, self.exit_code = code, exit  # type: ignore[misc]


def _say(asked: Asked, value: Mapping[str, Any], text: str) -> int:
    return emit(json.dumps(value, indent=2, ensure_ascii=False) + "\n" if "json" in asked.flags else text)


# --- the commands ------------------------------------------------------------------------------------------------


def _run(asked: Asked) -> int:
    wait = "wait" in asked.flags
    value = _ask(asked, "run", workflow=asked.operand(), inputs=_inputs(asked), id=asked.last("id"),
                 key=asked.last("key"), wait=wait)  # fmt: skip
    if not wait:
        return _say(asked, value, value["run"] + "\n")
    code: int = value["exit"]
    if value["err"] is not None:
        tell("run.done", level="error", run=value["run"], status=value["status"], err=value["err"])
    lost = _say(asked, value, printed(value["output"]))
    return code if lost == EXIT_OK else lost


def _inputs(asked: Asked) -> dict[str, Any]:
    inputs = _json("--inputs", asked.last("inputs") or "{}")
    if not isinstance(inputs, dict):
        raise UsageError("--inputs needs a JSON object")
    for given in asked.flags.get("input", ()):
        name, equals, text = given.partition("=")
        if not equals or not name:
            raise UsageError(f"--input needs NAME=VALUE, got {given!r}")
        inputs[name] = _json_or_text(text)
    return inputs


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json(flag: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{flag} needs JSON: {error}") from error


def _status(asked: Asked) -> int:
    value = _ask(asked, "status", run=asked.operand())
    return _say(asked, value, standing.run(value) if asked.operands else standing.instance(value))


def _cancel(asked: Asked) -> int:
    value = _ask(asked, "cancel", run=asked.operand(), reason=asked.last("reason"))
    return _say(asked, value, f"cancelled {value['cancelled']}\n")


def _signal(asked: Asked) -> int:
    payload = _json("--payload", asked.last("payload") or "null")
    value = _ask(asked, "signal", name=asked.operand(), payload=payload, run=asked.last("run"))
    woken, started = value["woken"], value["started"]
    if value["kept"]:
        return _say(asked, value, "kept until the run asks for it\n")
    code = _say(asked, value, f"woke {woken}, started {started}\n")
    return code or (EXIT_OK if woken or started else EXIT_FAILED)


def _answer(asked: Asked) -> int:
    task, text = asked.operand(), asked.last("value")
    if task is None:
        value = _ask(asked, "gates")
        return _say(asked, value, "".join(map(standing.question, value["gates"])) or "nobody is asked anything\n")
    if text is None:
        raise UsageError("agentd answer: TASK needs --value VALUE")
    value = _ask(asked, "answer", task=task, value=_json_or_text(text))
    return _say(asked, value, f"answered {value['task']}\n")


def _pause(asked: Asked) -> int:
    value = _ask(asked, "pause", run=asked.operand())
    return _say(asked, value, f"paused {value['paused']}\n" if asked.operands else f"{value['state']}\n")


def _resume(asked: Asked) -> int:
    value = _ask(asked, "resume", run=asked.operand())
    return _say(asked, value, f"resumed {value['resumed']}\n" if asked.operands else f"{value['state']}\n")


_VERBS = {
    "run": Verb(1, 1, {"input": True, "inputs": True, "id": True, "key": True, "wait": False}, _run),
    "status": Verb(0, 1, {}, _status),
    "cancel": Verb(1, 1, {"reason": True}, _cancel),
    "signal": Verb(1, 1, {"run": True, "payload": True}, _signal),
    "answer": Verb(0, 1, {"value": True}, _answer),
    "pause": Verb(0, 1, {}, _pause),
    "resume": Verb(0, 1, {}, _resume),
}
