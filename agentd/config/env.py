"""The environment layer: exact names only, so that what others inject into the namespace never reaches a path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentd.config.findings import Finding
from agentd.config.paths import ALIASES, Table
from agentd.config.settings import Setting

RESERVED = frozenset(
    ("AGENTD_CONFIG", "AGENT_CONFIG", "AGENTD_STATE_DIR", "AGENTD_CRED_DIR", "AGENT_POD_NAME", "AGENT_POD_NAMESPACE")
)
_TOKEN = re.compile(r"AGENTD?_INTELLIGENCE_TOKEN_([1-9][0-9]{0,2})(_FILE)?", re.ASCII)
_FOREIGN = re.compile(r"_SERVICE_(HOST|PORT.*)$|_PORT(_\d+_(TCP|UDP|SCTP).*)?$", re.ASCII)
"""Service links of Kubernetes and Docker."""


def read(environ: Mapping[str, str], table: Table) -> tuple[list[Setting], list[Finding]]:
    """The settings in the order they apply (objects before what lies in them), and warnings of near misses.

    The long name beats the short one, ``AGENTD_`` beats ``AGENT_``, an empty value is unset.
    """
    settings: list[Setting] = []
    for path, name in _named(environ, table):
        if _adds(path, name):
            parts = [part.strip() for part in environ[name].split(",") if part.strip()]
            settings += [Setting("env", name, path, part, adds=True) for part in parts]
        else:
            settings.append(Setting("env", name, path, environ[name]))
    settings.sort(key=lambda s: s.path.count("."))
    return settings + list(_tokens(environ)), list(_near_misses(environ, table))


def _named(environ: Mapping[str, str], table: Table) -> Iterator[tuple[str, str]]:
    shorts: dict[str, list[str]] = {}
    for alias in ALIASES:
        names = [f"AGENTD_{alias.env}", f"AGENT_{alias.env}", *([alias.env] if alias.bare else [])]
        shorts.setdefault(alias.path, []).extend(names)
    taken = {f"{prefix}_{alias.env}" for alias in ALIASES for prefix in ("AGENTD", "AGENT")}
    for path in dict.fromkeys([*table.by_path, *shorts]):
        long = path.replace(".", "_").replace("-", "_").upper()
        own = [
            name for name in (f"AGENTD_{long}", f"AGENT_{long}") if name not in taken or name in shorts.get(path, ())
        ]
        if name := next((n for n in [*own, *shorts.get(path, ())] if environ.get(n)), None):
            yield path, name


def _adds(path: str, name: str) -> bool:
    """Whether the variable is the short one of a repeatable flag: ``AGENTD_MCP=a=https://…,b=https://…``."""
    return any(
        alias.adds and alias.path == path and name in (f"AGENTD_{alias.env}", f"AGENT_{alias.env}") for alias in ALIASES
    )


def _tokens(environ: Mapping[str, str]) -> Iterator[Setting]:
    """``AGENTD_INTELLIGENCE_TOKEN_2``: the credential of the second endpoint."""
    for name in sorted(environ):
        if (match := _TOKEN.fullmatch(name)) and environ[name]:
            if name.startswith("AGENT_") and environ.get(name.replace("AGENT_", "AGENTD_", 1)):
                continue
            path = "intelligence.token_files" if match[2] else "intelligence.tokens"
            yield Setting("env", name, path, environ[name], key=match[1])


def _near_misses(environ: Mapping[str, str], table: Table) -> Iterator[Finding]:
    words = [o.env for o in table.options] + [a.env for a in ALIASES]
    known = {f"{prefix}{word}" for prefix in ("AGENTD_", "AGENT_") for word in words} | RESERVED
    for name in sorted(environ):
        if (
            not name.startswith(("AGENTD_", "AGENT_"))
            or name in known
            or _TOKEN.fullmatch(name)
            or _FOREIGN.search(name)
        ):
            continue
        import difflib

        prefix = "AGENTD_" if name.startswith("AGENTD_") else "AGENT_"
        close = difflib.get_close_matches(name.removeprefix(prefix), words, n=1, cutoff=0.86)
        if close:
            yield Finding("warning", name, f"{name} sets nothing; did you mean {prefix}{close[0]}?")
