"""The shell blocks of the documentation: which commands are in them, and which can be run here."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
GATEWAY = "https://gw.example/v1"
"""The model of the documentation; the mock model stands in for it."""
PROBES = {"--help", "-h", "--version", "-V", "--validate-config", "--config-schema", "--workflow-schema",
          "--effective-config", "--capabilities"}  # fmt: skip
OFFLINE = {"plugins", "workflow"}
"""Commands that need nothing but files."""


class Block(NamedTuple):
    """A shell block, and the files that its page shows: a block whose first line is a comment with the name."""

    page: str
    text: str
    files: dict[str, str]

    @property
    def script(self) -> str:
        """What is run."""
        return self.text.replace(GATEWAY, "mock:final")

    @property
    def commands(self) -> list[list[str]]:
        """The arguments of every `agentd` in it."""
        return list(_commands(self.text))

    @property
    def runs(self) -> bool:
        """Whether it begins with `agentd` and can do all of its work here."""
        lines = [line for line in self.script.splitlines() if line.strip() and not line.startswith("#")]
        begins = next((i for i, line in enumerate(lines) if not re.match(r"[A-Z_]+='[^']*'$", line)), 0)
        first = re.sub(r"^([A-Z_]+=\S* )+", "", lines[begins]) if lines else ""
        if not first.startswith("agentd ") or "…" in self.text or ("| jq" in self.text and not shutil.which("jq")):
            return False
        return all(self._offline(args) for args in _commands(self.script))

    def _offline(self, args: list[str]) -> bool:
        if any(re.search(r"https?://", arg) for arg in args):
            return False
        if args and args[0] in OFFLINE:
            return all(not arg.endswith(".yaml") or arg in self.files or (ROOT / arg).exists() for arg in args)
        named = [b for a, b in itertools.pairwise(args) if a in ("-c", "--config", "--env")]
        scripts = [arg.removeprefix("mock:") for arg in args if arg.startswith("mock:") and arg != "mock:final"]
        if any(name not in self.files for name in [*named, *scripts]):
            return False
        return bool(PROBES & set(args)) or any(
            "mock:" in text for text in [*args, *(self.files[name] for name in named)]
        )


def blocks(page: Path) -> list[Block]:
    """The shell blocks of `page`."""
    found = FENCE.findall(page.read_text())
    files = {match[1]: text for _, text in found if (match := re.match(r"# ([\w.-]+\.(?:ya?ml|env|json|md))\n", text))}
    return [Block(str(page.relative_to(ROOT)), text, files) for kind, text in found if kind == "sh"]


def _commands(text: str) -> Iterator[list[str]]:
    whole = re.sub(r"\\\n\s*", " ", text)
    for line in whole.splitlines():
        inner = re.findall(r"\$\(([^)]*)\)", line)
        for part in [*re.split(r"\||&&|;", re.sub(r"\$\([^)]*\)", "X", line)), *inner]:
            try:
                words = shlex.split(re.sub(r"\s\d?>{1,2}\s*\S+", " ", part), comments=True)
            except ValueError:
                continue
            while words and re.match(r"[A-Za-z_]+=", words[0]):
                words.pop(0)
            if words and words[0] in ("if", "timeout", "exec"):
                words = words[2 if words[0] == "timeout" else 1 :]
            if words and words[0] == "agentd":
                yield words[1:]
