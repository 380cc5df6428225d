"""One table of the three names of every option: path, environment variable, flag; derived from the model alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agentd.config.shapes import Shape, fields_of

_SEPARATORS = re.compile(r"[.\-_]")


def key_of(name: str) -> str:
    """`name` as it is compared: ``limits.run.steps``, ``--limits-run-steps`` and ``LIMITS_RUN_STEPS`` are one."""
    return _SEPARATORS.sub("_", name).lower()


@dataclass(frozen=True, slots=True)
class Option:
    """A path of the schema. `replaces` is set below a value that may also be a string (`agent.instruction`)."""

    at: tuple[str, ...]
    shape: Shape
    help: str = ""
    default: Any = None
    secret: bool = False
    restart: bool = False
    relaxes: bool = False
    replaces: int = 0

    @property
    def path(self) -> str:
        return ".".join(self.at)

    @property
    def env(self) -> str:
        """Without its prefix, which is ``AGENTD_`` or ``AGENT_``."""
        return key_of(self.path).upper()


@dataclass(frozen=True, slots=True)
class Alias:
    """A short flag and variable for a path, or (`adds`) for one more element of a list."""

    flag: str
    path: str
    adds: bool = False
    bare: bool = False
    help: str = ""

    @property
    def env(self) -> str:
        return key_of(self.flag).upper()


ALIASES = (
    Alias("instruction", "agent.instruction", bare=True),
    Alias("instruction.file", "agent.instruction.file"),
    Alias("instruction.oci", "agent.instruction.oci"),
    Alias("prompt", "agent.prompt"),
    Alias("intelligence", "intelligence.endpoints"),
    Alias("intelligence-token", "intelligence.token"),
    Alias("model", "intelligence.model"),
    Alias("mcp", "mcp.servers", adds=True, help="NAME=URL: add a server (repeatable)"),
    Alias("workflow", "workflows", adds=True, help="FILE: add a workflow (repeatable)"),
    Alias("a2a-peer", "a2a.peers", adds=True, help="NAME=URL: add a peer (repeatable)"),
    Alias("max-steps", "limits.run.steps"),
    Alias("max-tokens", "limits.run.tokens"),
    Alias("deadline", "limits.run.deadline"),
    Alias("max-depth", "limits.subagents.depth"),
    Alias("run-id", "lifecycle.run_id"),
    Alias("drain-timeout", "lifecycle.drain_timeout"),
    Alias("log-level", "observability.log_level"),
    Alias("log-content", "observability.log_content"),
    Alias("health-file", "observability.health_file"),
    Alias("metrics-addr", "observability.metrics_addr"),
    Alias("watch-config", "lifecycle.watch_config"),
    Alias("tls-ca", "security.tls_ca"),
    Alias("traceparent", "observability.traceparent"),
    Alias("listen", "a2a.listen"),
    Alias("allow-trifecta", "security.allow_trifecta"),
    Alias("cgroup", "security.cgroup.spec"),
    Alias("cgroup-memory-max", "security.cgroup.memory_max"),
    Alias("cgroup-pids-max", "security.cgroup.pids_max"),
)
"""Those whose path no installed plugin serves are refused, naming the path."""


class Table:
    """The options of a composed document, by path and by key."""

    def __init__(self, document: type[BaseModel]) -> None:
        self.options = list(_walk(document, (), 0))
        self.by_path = {option.path: option for option in self.options}
        self.by_key: dict[str, Option] = {}
        for option in self.options:
            other = self.by_key.setdefault(key_of(option.path), option)
            if other is not option:
                raise ValueError(f"{other.path} and {option.path} have one name in the environment: {option.env}")
        self.aliases = {key_of(alias.flag): alias for alias in ALIASES}

    def open_map(self, flag: str) -> tuple[Option, str] | None:
        """The free-form map that a dotted flag reaches into, and the one key it names, as it is spelled."""
        key = key_of(flag)
        for option in self.options:
            stem = key_of(option.path)
            if key.startswith(stem + "_") and flag[len(stem)] == "." and _open(option.shape):
                return option, flag[len(stem) + 1 :]
        return None


def _open(shape: Shape) -> bool:
    if shape.kind == "map":
        return True
    return shape.model is not None and shape.model.model_config.get("extra") == "allow"


def _walk(model: type[BaseModel], at: tuple[str, ...], replaces: int) -> Iterator[Option]:
    for (name, shape), info in zip(fields_of(model).items(), model.model_fields.values(), strict=True):
        here = (*at, name)
        yield _option(here, shape, info, replaces)
        if shape.model is not None:
            yield from _walk(shape.model, here, len(here) if shape.kind == "either" else replaces)


def _option(at: tuple[str, ...], shape: Shape, info: FieldInfo, replaces: int) -> Option:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    default = info.default if info.default_factory is None else None
    return Option(
        at=at,
        shape=shape,
        help=info.description or "",
        default=None if default is PydanticUndefined else default,
        secret=bool(extra.get("secret")),
        restart=extra.get("reload") == "restart",
        relaxes=bool(extra.get("relaxes")),
        replaces=replaces,
    )
