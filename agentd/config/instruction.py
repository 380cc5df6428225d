"""The instruction: what `agent.instruction` names, read. Contract: `docs/configuration.md`.

A string is classified: a newline makes it text; ``scheme://`` a source of that scheme; no white space and a document's
extension or the shape of a path a file or a directory; everything else is text.
"""

from __future__ import annotations

import re
from pathlib import Path

from agentd.config.document import Instruction
from agentd.errors import ConfigError

_DOCUMENT = re.compile(r"\S+\.(md|markdown|txt|instruction)", re.IGNORECASE)
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://\S+")
_LIMIT = 4 << 20


def read_instruction(given: str | Instruction | None, cwd: Path) -> str:
    """The text of the instruction, "" when there is none.

    Raises ConfigError for a source that is missing, cannot be read, or that nobody here reads.
    """
    if given is None:
        return ""
    if isinstance(given, str):
        return _classified(given, cwd)
    if given.text is not None:
        return given.text
    if given.file is not None:
        return _file(cwd / given.file, given.file)
    if given.dir is not None:
        return _directory(cwd / given.dir.path, given.dir.glob, given.dir.order)
    raise ConfigError(findings=[("agent.instruction", "give exactly one of text, file and dir")])


def _classified(given: str, cwd: Path) -> str:
    if "\n" in given:
        return given
    if found := _SCHEME.fullmatch(given.strip()):
        raise _wrong(f"no installed plugin reads {found.group(1).lower()}:// instructions; give text or a file")
    word = given.strip()
    if word and not re.search(r"\s", word) and (_DOCUMENT.fullmatch(word) or word.startswith(("/", "./", "../", "~/"))):
        path = cwd / Path(word).expanduser()
        if path.is_dir():
            return _directory(path, "*.md", "name")
        if not path.exists():
            raise _wrong(
                f"{word} reads as a file and does not exist; as text it needs a blank, or agent.instruction.text"
            )
        return _file(path, word)
    return given


def _file(path: Path, shown: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _wrong(f"cannot read the instruction file {shown}: {error.strerror}") from error
    if len(data) > _LIMIT:
        raise _wrong(f"the instruction file {shown} exceeds {_LIMIT >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(f"the instruction file {shown} is not UTF-8 (byte {error.start})") from error
    if not text.strip():
        raise _wrong(f"the instruction file {shown} is empty")
    return text


def _directory(path: Path, glob: str, order: str) -> str:
    files = [p for p in path.glob(glob) if p.is_file()] if path.is_dir() else []
    if not files:
        raise _wrong(f"no file in {path} matches {glob}")
    files.sort(key=lambda p: (p.stat().st_mtime_ns if order == "date" else 0, p.name))
    return "\n\n".join(_file(p, str(p)) for p in files)


def _wrong(message: str) -> ConfigError:
    return ConfigError(findings=[("agent.instruction", message)])
