"""The words behind ``agentd workflow COMMAND``: files and flags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from agentd.errors import UsageError


class Words(NamedTuple):
    """A command line, read. `flags` holds the values of each flag in order."""

    files: list[str]
    flags: dict[str, list[str]]

    def last(self, flag: str) -> str | None:
        return self.flags[flag][-1] if flag in self.flags else None

    def json(self, flag: str) -> Any:
        """The value of `flag`, which is JSON; None without it."""
        text = self.last(flag)
        try:
            return None if text is None else json.loads(text)
        except ValueError as error:
            raise UsageError(f"--{flag} needs JSON: {error}") from error

    def inputs(self) -> dict[str, Any] | None:
        """`--inputs` and `--input NAME=VALUE` together; None when neither is given."""
        inputs: dict[str, Any] | None = self.json("inputs")
        if inputs is not None and not isinstance(inputs, dict):
            raise UsageError("--inputs needs a JSON object")
        for given in self.flags.get("input", ()):
            name, equals, text = given.partition("=")
            if not equals or not name:
                raise UsageError(f"--input needs NAME=VALUE, got {given!r}")
            inputs = {**(inputs or {}), name: _value(text)}
        return inputs


def read(args: list[str], known: Mapping[str, bool], command: str) -> Words:
    """`args` by `known`, flag to whether it takes a value. Raises UsageError."""
    words, left = Words([], {}), list(args)
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            words.files.append(word)
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        if name not in known:
            raise UsageError(f"agentd workflow {command}: there is no flag --{name}; agentd workflow --help names them")
        if known[name] and not equals:
            if not left:
                raise UsageError(f"agentd workflow {command}: --{name} needs a value")
            value = left.pop(0)
        words.flags.setdefault(name, []).append(value)
    if not words.files:
        raise UsageError(f"agentd workflow {command} needs a FILE")
    return words


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
