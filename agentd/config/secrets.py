"""Secret references: where they stand, and what they resolve to at the moment of use.

A literal that a variable or a flag carries never enters the settings: it is kept here under a name of its own and the
document holds the reference, so that every credential of a document is a reference, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentd.config.findings import Finding, dotted
from agentd.config.syntax import Where
from agentd.errors import SecretMissing

REFERENCE = re.compile(r"\{\{\s*secret(?P<file>-file)?:\s*(?P<name>[^{}]*?)\s*\}\}")
_CREDENTIAL = re.compile(
    r"(^|[-_])(proxy-)?authorization$|token$|key$|cookie2?$|password$|passwd$|secret$", re.IGNORECASE
)
_LIMIT = 1 << 20


def credential_name(name: str) -> bool:
    """Whether a header or a field of an auth scheme by this name holds a credential; more rather than fewer do."""
    return bool(_CREDENTIAL.search(name))


def credential_place(at: Where) -> bool:
    """Whether a path names a credential-shaped header or field of an auth scheme."""
    return ("headers" in at[:-1] or "auth" in at[:-1]) and credential_name(str(at[-1]))


def is_reference(value: Any) -> bool:
    """Whether `value` is text with nothing secret in it but references: ``Bearer {{secret:X}}`` is."""
    return isinstance(value, str) and REFERENCE.search(value) is not None


class Literals:
    """Credentials given by a variable or a flag, by the name their reference has. Never shown."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def hide(self, value: Any, at: Where, *, secret: bool, source: str) -> Any:
        """`value` with each literal credential replaced by a reference to it; `source` is who gave it."""
        if isinstance(value, dict):
            return {k: self.hide(v, (*at, k), secret=secret, source=f"{source}.{k}") for k, v in value.items()}
        if isinstance(value, list):
            return [self.hide(v, (*at, i), secret=secret, source=f"{source}.{i}") for i, v in enumerate(value)]
        if isinstance(value, str) and value and (secret or credential_place(at)) and not is_reference(value):
            label = source.lstrip("-")
            self._values[label] = value
            return f"{{{{secret:{label}}}}}"
        return value

    def keep(self, name: str, value: str) -> None:
        """Hold what was asked for on the terminal, in memory only."""
        self._values[name] = value

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def __repr__(self) -> str:
        return f"Literals({sorted(self._values)})"


class Resolver:
    """Implements :class:`agentd.ports.host.Secrets`; reads a file anew each time, so a rotated one is picked up."""

    def __init__(self, environ: Mapping[str, str], literals: Literals, cwd: Path) -> None:
        self._environ, self._literals, self._cwd = environ, literals, cwd

    def resolve(self, text: str) -> str:
        """`text` with each reference replaced. Raises :class:`agentd.errors.SecretMissing` naming the reference."""
        return REFERENCE.sub(self._one, text) if "{{" in text else text

    def _one(self, match: re.Match[str]) -> str:
        name = match["name"]
        if match["file"]:
            return self._file(name)
        value = self._literals.get(name) or self._environ.get(name)
        if not value:
            raise SecretMissing(f"secret {name} is not set: set the environment variable {name}", name=name)
        return value

    def _file(self, name: str) -> str:
        try:
            with (self._cwd / name).open("rb") as file:
                data = file.read(_LIMIT + 1)
            value = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, ValueError) as fault:
            why = getattr(fault, "strerror", None) or "not UTF-8 text"
            raise SecretMissing(f"secret file {name}: {why}", name=name) from None
        if len(data) > _LIMIT or not value:
            raise SecretMissing(f"secret file {name} is {'too large' if data else 'empty'}", name=name)
        return value

    def missing(self, document: Any) -> list[Finding]:
        """Every reference in `document` that resolves to nothing, each name once."""
        found: dict[str, Finding] = {}
        for at, text in strings(document):
            for match in REFERENCE.finditer(text):
                try:
                    self._one(match)
                except SecretMissing as fault:
                    found.setdefault(match.group(), Finding("error", dotted(at), fault.message))
        return list(found.values())

    def prompt(self, document: Any, ask: Callable[[str], str]) -> None:
        """Ask once for each environment secret that `document` names and nobody gives."""
        for _, text in strings(document):
            for match in REFERENCE.finditer(text):
                name = match["name"]
                if not match["file"] and not (self._literals.get(name) or self._environ.get(name)):
                    self._literals.keep(name, ask(f"{name}: "))

    def __repr__(self) -> str:
        return "Resolver()"


PROSE: frozenset[Where] = frozenset((("agent", "instruction"), ("agent", "persona"), ("agent", "prompt")))
"""Text the model reads: braces in it are the author's, and no secret is ever put there."""


def strings(value: Any, at: Where = ()) -> Iterator[tuple[Where, str]]:
    """Every string of a document with its path, prose left out."""
    if at in PROSE:
        return
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from strings(below, (*at, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from strings(below, (*at, index))
