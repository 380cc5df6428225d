"""Steps of the model in a rehearsal: the mock model's rounds, played without a wire, calling fake tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Done, Effect, Failed, Outcome
from agentd.errors import ConfigError

if TYPE_CHECKING:
    from agentd.runtime.rehearsal.script import Answer

MODEL = frozenset({"agent", "think", "classify", "extract", "summarize", "judge", "route"})
_STRUCTURED = frozenset({"classify", "extract", "judge", "route"})
_ROUNDS = 100


class Model:
    """Plays `rounds` (``docs/mock-model.md``) to every turn; `tool` answers what a round calls."""

    def __init__(self, rounds: Sequence[Mapping[str, Any]], tool: Callable[[str], Answer | None]) -> None:
        self._rounds, self._tool = rounds, tool
        self._number = 0

    def perform(self, effect: Effect) -> tuple[Outcome, float, list[str]]:
        """The outcome of a turn, how long it took, and the calls in it. Raises ConfigError for want of an answer."""
        from agentd.testing.mock_script import answer, load

        if not self._rounds:
            raise _silent(effect, f"add rounds: [{{text: …}}], or steps: {{{effect.entry}: {{output: …}}}}")
        script = load({"rounds": list(self._rounds)})
        messages: list[dict[str, Any]] = [{"role": "user", "content": _prompt(effect)}]
        took, told, tokens = 0.0, list[str](), 0
        limit = (effect.fields.get("limits") or {}).get("steps") or _ROUNDS
        for count in range(1, limit + 1):
            index = script.pick(messages)
            if index is None:
                raise _silent(effect, f"no round fits round {count} of its turn")
            entry = script.rounds[index]
            took += entry.delay
            if entry.error is not None and entry.error.times is None:
                return Failed("intelligence", entry.error.message, retry=False, tokens=tokens, rounds=count), took, told
            self._number += 1
            said = answer(entry, {"messages": messages}, self._number)
            tokens += said.get("usage", {}).get("total_tokens", 0)
            message = said["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return _outcome(effect, message["content"] or "", tokens, count), took, told
            for call in message["tool_calls"]:
                name, arguments = call["function"]["name"], call["function"]["arguments"]
                given = self._tool(name)
                if given is None:
                    raise _silent(effect, f"its model calls {name}: add tools: {{{name}: {{output: …}}}}")
                took += given.takes
                text = f"ERROR: {given.error}" if given.error is not None else _text(given.output)
                told.append(f"{name} {arguments} → {text}")
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        return Failed("budget", f"no end after {limit} rounds", retry=False, tokens=tokens, rounds=limit), took, told


def _prompt(effect: Effect) -> str:
    fields = effect.fields
    return _text(fields.get("prompt") or fields.get("instruction") or fields.get("input") or "")


def _outcome(effect: Effect, text: str, tokens: int, rounds: int) -> Outcome:
    output: Any = text
    if effect.kind in _STRUCTURED or isinstance(effect.fields.get("output_schema"), dict):
        try:
            output = json.loads(text)
        except ValueError:
            return Failed("output", f"the model's answer is no JSON: {text}", tokens=tokens, rounds=rounds)
    if effect.kind == "judge" and isinstance(output, dict) and "score" in output:
        threshold = effect.fields["threshold"]
        output = {**output, "passed": output["score"] >= (0.5 if threshold is None else threshold)}
    return Done(output, tokens=tokens, rounds=rounds)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _silent(effect: Effect, what: str) -> ConfigError:
    return ConfigError(
        findings=[("rounds", f"the script has no answer for {effect.kind} in step {effect.entry}; {what}")]
    )
