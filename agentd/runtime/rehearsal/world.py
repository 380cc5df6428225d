"""Who performs effects in a rehearsal: the script, a memory of its own, and the mock model with fake tools."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentd.engine.decision import Done, Effect, Failed, Outcome, TimedOut, Wait
from agentd.errors import ConfigError
from agentd.runtime.rehearsal.model import MODEL, Model
from agentd.runtime.rehearsal.script import Answer, Script

_INNER = re.compile(r"\[[^\]]*\]|\{[^}]*\}|#\d+")


class Reply(NamedTuple):
    """An outcome and when it comes, in seconds from the question. `told` is what happened meanwhile."""

    outcome: Outcome
    takes: float = 0.0
    told: Sequence[str] = ()


class World:
    """Answers every effect and wait of one run."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.memory: dict[str, Any] = dict(script.memory)
        self._artifacts: dict[str, Any] = {}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._model = Model(script.rounds, lambda name: self._answer("tools", name))

    def perform(self, effect: Effect) -> Reply:
        """The reply to an effect. Raises ConfigError when the script has none, naming what to add."""
        if answer := self._of_step(effect.entry):
            return _reply(answer)
        if effect.kind in MODEL:
            return Reply(*self._model.perform(effect))
        if (section := _SECTIONS.get(effect.kind)) is not None:
            name = asked(effect)
            if answer := self._answer(section, name) or self._answer(section, effect.fields.get("url", "")):
                return _response(answer, effect) if section == "http" else _reply(answer)
            raise _silent(effect.entry, effect.kind, section, name)
        done = self._kept(effect.kind, effect.fields, effect.key)
        if done is None and effect.kind in _PATIENT and effect.timeout is not None:
            return Reply(TimedOut(), effect.timeout)
        if done is None:
            raise _silent(effect.entry, effect.kind, "steps", effect.entry)
        return Reply(done)

    def wake(self, wait: Wait) -> Reply | None:
        """What ends a wait, None when nothing but its time does."""
        if answer := self._of_step(wait.entry):
            return _reply(answer)
        if wait.on.get("on") != "signal":
            return None
        name = str(wait.on.get("name"))
        if (answer := self._answer("signals", name)) is None:
            return None
        return Reply(Done({"signal": name, "payload": answer.output, "from": "script"}), answer.takes)

    def _of_step(self, entry: str) -> Answer | None:
        """By the entry as it is, without what tells repetitions apart, or by the step's own id."""
        plain = _INNER.sub("", entry)
        names = dict.fromkeys((entry, plain, plain.rpartition(".")[2]))
        return next((answer for name in names if (answer := self._answer("steps", name))), None)

    def _answer(self, section: str, name: str) -> Answer | None:
        answers: list[Answer] | None = getattr(self.script, section).get(name)
        if answers is None:
            return None
        turn = self._asked[section, name]
        self._asked[section, name] += 1
        return answers[min(turn, len(answers) - 1)]

    def _kept(self, kind: str, fields: Mapping[str, Any], key: str) -> Done | None:
        """Memory, artifacts and events do what they always do, as long as the rehearsal lasts."""
        match kind:
            case "memory.get":
                return Done({"found": fields["key"] in self.memory, "value": self.memory.get(fields["key"])})
            case "memory.set":
                self.memory[fields["key"]] = fields["value"]
                return Done({"key": fields["key"]})
            case "memory.list":
                return Done(sorted(name for name in self.memory if name.startswith(fields["prefix"])))
            case "memory.delete":
                there = fields["key"] in self.memory
                self.memory.pop(fields["key"], None)
                return Done({"deleted": there})
            case "artifact.create":
                self._artifacts[key] = fields["content"]
                return Done({"id": key, "size": len(json.dumps(fields["content"]))})
            case "artifact.get":
                id = fields["id"]
                return Done({"found": id in self._artifacts, "content": self._artifacts.get(id)})
            case "artifact.delete":
                self._artifacts.pop(fields["id"], None)
                return Done({"id": fields["id"]})
            case "emit":
                self._asked["emit", str(fields["stream"])] += 1
                return Done({"stream": fields["stream"], "n": self._asked["emit", str(fields["stream"])]})
            case "workflow.signal":
                return Done({"id": key, "woken": 0, "started": 0, "kept": False})
        return None


_PATIENT = frozenset({"human", "join", "workflow.wait"})
"""Kinds that wait for somebody: unanswered, their timeout comes."""

_SECTIONS = {"mcp.tool": "tools", "tool": "tools", "mcp.resource": "tools", "http": "http"}


def asked(effect: Effect) -> str:
    """The name by which a script answers an effect: a tool's full name, ``GET https://…``, a server's resource."""
    fields = effect.fields
    match effect.kind:
        case "mcp.tool":
            return f"{fields['server']}.{fields['tool']}"
        case "mcp.resource":
            return f"{fields['server']} {fields['uri'] or fields['op']}"
        case "http":
            return f"{fields['method']} {fields['url']}"
    return str(fields.get("name", ""))


def _reply(answer: Answer) -> Reply:
    if answer.error is not None:
        return Reply(Failed(answer.code, answer.error, retry=answer.retry), answer.takes)
    return Reply(Done(answer.output), answer.takes)


def _response(answer: Answer, effect: Effect) -> Reply:
    """An HTTP answer may be told by its parts: ``{status, headers, body, json}``; any other value is the JSON body."""
    from agentd.runtime.steps.http import expected

    given = answer.output
    if answer.error is not None:
        return _reply(answer)
    if not (isinstance(given, dict) and given.keys() and given.keys() <= {"status", "headers", "body", "json"}):
        given = {"json": given}
    status = given.get("status", 200)
    if not expected(effect.fields["expect"], status):
        failed = Failed("http", f"{asked(effect)} was answered with {status}", retry=status >= 500 or status == 429)
        return Reply(failed, answer.takes)
    body = given.get("body", json.dumps(given.get("json"), ensure_ascii=False))
    output = {"status": status, "ok": status < 400, "headers": given.get("headers", {}), "body": body,
              "json": given.get("json")}  # fmt: skip
    return Reply(Done(output), answer.takes)


def _silent(entry: str, kind: str, section: str, name: str) -> ConfigError:
    return ConfigError(
        findings=[
            (
                section,
                f'the script has no answer for {kind} in step {entry}; add {section}: {{"{name}": {{output: …}}}}',
            )
        ]
    )
