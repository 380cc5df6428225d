"""The dotenv dialect of `--env FILE`, on python-dotenv's parser.

Documented where dialects differ: ``A=123#4`` keeps its hash (a comment needs a blank before it), ``${NAME}`` is
expanded outside single quotes from the real environment and the lines above, a bare ``$`` is itself.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentd.config.files import reason, text_of
from agentd.errors import UsageError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}", re.ASCII)


def parse(text: str, name: str, outer: Mapping[str, str]) -> dict[str, str]:
    """The variables of one file. Raises :class:`agentd.errors.UsageError` as ``FILE:LINE: reason``."""
    from dotenv.parser import parse_stream

    found: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(text.replace("\r\n", "\n"))):
        raw = binding.original.string
        line = binding.original.line + raw[: len(raw) - len(raw.lstrip())].count("\n")
        if binding.error or (binding.key is not None and binding.value is None):
            raise UsageError(f"{name}:{line}: expected NAME=VALUE")
        if binding.key is None or binding.value is None:
            continue
        if not _NAME.fullmatch(binding.key):
            raise UsageError(f"{name}:{line}: {binding.key!r} is no variable name (letters, digits, underscore)")
        if "\0" in binding.value:
            raise UsageError(f"{name}:{line}: a value cannot hold a NUL")
        quoted = re.match(r"\s*(?:export\s+)?[^=]*=\s*'", raw) is not None
        found[binding.key] = binding.value if quoted else _expand(binding.value, found, outer)
    return found


def _expand(value: str, found: Mapping[str, str], outer: Mapping[str, str]) -> str:
    def of(match: re.Match[str]) -> str:
        return outer.get(match[1]) or found.get(match[1]) or match[2] or ""

    return _VARIABLE.sub(of, value)


def overlay(environ: Mapping[str, str], files: Sequence[str], cwd: Path) -> dict[str, str]:
    """The environment with `files` under it: the real one wins, a later file beats an earlier one."""
    added: dict[str, str] = {}
    for name in files:
        try:
            text = text_of(cwd / name)
        except (OSError, ValueError) as fault:
            raise UsageError(f"--env {name}: {reason(fault)}") from None
        added |= parse(text, name, environ)
    return {**added, **environ}
