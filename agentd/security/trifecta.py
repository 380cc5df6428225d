"""The rule of two: untrusted input, sensitive data and a way out never meet in one grant; pure.

A tool's tags are the operator's, by glob, per tool; one that nobody tagged counts as untrusted input. What a server
says of its tools decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

TAGS = ("untrusted_input", "sensitive", "egress")
_UNTAGGED = frozenset({"untrusted_input"})


class Tagged(Protocol):
    """What is read of a declared server."""

    @property
    def name(self) -> str: ...
    @property
    def ns(self) -> str | None: ...
    @property
    def tags(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def allow(self) -> Sequence[str] | None: ...
    @property
    def exclude(self) -> Sequence[str]: ...


def tags_of(tags: Mapping[str, Sequence[str]], tool: str) -> frozenset[str]:
    """The tags of the tool named `tool` on its server: those of every glob that matches it."""
    found = frozenset(tag for glob, names in tags.items() if fnmatchcase(tool, glob) for tag in names)
    return found or _UNTAGGED


def forbidden(tags: Iterable[str]) -> bool:
    """Whether a grant with all of `tags` is refused."""
    return set(TAGS) <= set(tags)


def reach(server: Tagged, granted: Sequence[str], disabled: Sequence[str]) -> dict[str, str]:
    """Tag to the tool (or the glob, while the tools are not known) that brings it, for what a grant may reach.

    `granted` and `disabled` are globs over ``<ns or server>.<tool>``. Before the handshake the tools of a server are
    known by name only where its `allow` or its tags spell them out; any other glob counts as a tool.
    """
    prefix = server.ns or server.name
    named = [glob for glob in server.allow or ["*"] if not _wild(glob)]
    wild = [glob for glob in server.allow or ["*"] if _wild(glob)]
    found: dict[str, str] = {}
    for tool in named:
        _note(found, prefix, tool, tags_of(server.tags, tool), server, granted, disabled)
    if wild:
        for glob, tags in server.tags.items():
            _note(found, prefix, glob, tags, server, granted, disabled)
        if "*" not in server.tags:
            _note(found, prefix, "*", _UNTAGGED, server, granted, disabled)
    return found


def _note(
    found: dict[str, str],
    prefix: str,
    tool: str,
    tags: Iterable[str],
    server: Tagged,
    granted: Sequence[str],
    disabled: Sequence[str],
) -> None:
    full = f"{prefix}.{tool}"
    closed = any(fnmatchcase(tool, glob) for glob in server.exclude) or any(fnmatchcase(full, g) for g in disabled)
    allowed = server.allow is None or any(_overlap(tool, glob) for glob in server.allow)
    if not closed and allowed and any(_overlap(full, glob) for glob in granted):
        for tag in tags:
            found.setdefault(tag, full)


def explain(servers: Sequence[Tagged], granted: Sequence[str], disabled: Sequence[str]) -> str:
    """Why the grant is refused, naming a tool for each tag; empty when it is not."""
    found: dict[str, str] = {}
    for server in servers:
        for tag, tool in reach(server, granted, disabled).items():
            found.setdefault(tag, tool)
    if not forbidden(found):
        return ""
    return "one grant holds untrusted input, sensitive data and egress: " + ", ".join(f"{t} ({found[t]})" for t in TAGS)


def _wild(glob: str) -> bool:
    return any(c in glob for c in "*?[")


def _overlap(one: str, other: str) -> bool:
    """Whether some name may match both: exact when one is a name, else by the literal beginnings."""
    if not _wild(one):
        return fnmatchcase(one, other)
    if not _wild(other):
        return fnmatchcase(other, one)
    starts = [glob[: min(glob.find(c) for c in "*?[" if c in glob)] for glob in (one, other)]
    return starts[0].startswith(starts[1]) or starts[1].startswith(starts[0])
