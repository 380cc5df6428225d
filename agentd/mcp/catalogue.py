"""Which tools there are: pages put together, each tool judged alone, and the names a model may call them by; pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from agentd.mcp.records import Connected, Json, Problem, ServerSpec, Tool
from agentd.mcp.schemas import Hopeless, repair_input_schema

MAX_PAGES = 100
MAX_NAME = 64
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass
class Pages:
    """Puts a paginated listing together. Feed it page after page while `more`, with `cursor` as it came.

    An empty string is a cursor. A cursor that comes again, and more than :data:`MAX_PAGES` pages, end the listing with
    a `warning`; what was read is kept.
    """

    kind: str
    items: list[Json] = field(default_factory=list)
    cursor: str | None = None
    more: bool = True
    warning: str = ""
    _seen: set[str] = field(default_factory=set)

    def feed(self, page: Any) -> None:
        """Take a page: ``{<kind>: […], nextCursor?}``, read tolerantly."""
        found = page.get(self.kind) if isinstance(page, dict) else None
        if not isinstance(found, list):
            self.stop(f"a page holds no list of {self.kind}")
            return
        self.items += [item for item in found if isinstance(item, dict)]
        following = page.get("nextCursor")
        if not isinstance(following, str):
            self.more = False
        elif following in self._seen:
            self.stop("the cursor repeats")
        elif len(self._seen) + 1 >= MAX_PAGES:
            self.stop(f"there are more than {MAX_PAGES} pages")
        else:
            self._seen.add(following)
            self.cursor = following

    def stop(self, reason: str) -> None:
        """End the listing early."""
        self.more = False
        self.warning = f"the listing of {self.kind} was cut short: {reason}"


def judge_tools(spec: ServerSpec, listed: Iterable[Json]) -> tuple[list[Tool], list[Problem]]:
    """The tools of `listed` that can be offered, each judged alone, and what was repaired or left out."""
    tools: dict[str, Tool] = {}
    problems: list[Problem] = []
    for item in listed:
        name = item.get("name")
        if not isinstance(name, str) or not name:
            problems.append(Problem(tool="", message="a tool without a name was left out"))
        elif name not in tools and offered(spec, name):
            try:
                tools[name], notes = _judge(name, item)
            except (Hopeless, RecursionError) as e:
                problems.append(Problem(tool=name, message=f"left out: {e}"))
            else:
                problems += [Problem(tool=name, message=f"repaired: {note}") for note in notes]
    return list(tools.values()), problems


def offered(spec: ServerSpec, tool: str) -> bool:
    """Whether the configuration offers the bare tool name."""
    allowed = spec.allow is None or any(fnmatchcase(tool, glob) for glob in spec.allow)
    return allowed and not any(fnmatchcase(tool, glob) for glob in spec.exclude)


def _judge(name: str, item: Json) -> tuple[Tool, list[str]]:
    schema, notes = repair_input_schema(item.get("inputSchema"))
    output, hints = item.get("outputSchema"), item.get("annotations")
    tool = Tool(
        name=name,
        description=_first_text(item.get("description"), item.get("title")),
        schema=schema,
        output_schema=output if isinstance(output, dict) else None,
        read_only=isinstance(hints, dict) and hints.get("readOnlyHint") is True,
    )
    return tool, notes


def _first_text(*candidates: Any) -> str:
    return next((c for c in candidates if isinstance(c, str) and c), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool of a server under its names: `full` is ``<ns or server>.<tool>``, `safe` what a provider takes."""

    server: str
    tool: Tool
    full: str
    safe: str


class Catalogue:
    """The tools of several servers. Made anew when one changes; equal servers and tools give equal names."""

    def __init__(self, specs: Sequence[ServerSpec], connected: Mapping[str, Connected]) -> None:
        self.offers: list[Offer] = []
        """In the order of the configuration and of each listing."""
        pairs = [(s, tool) for s in specs if s.name in connected for tool in connected[s.name].tools]
        safe = safe_names([(f"{s.prefix}.{tool.name}", s.name) for s, tool in pairs])
        for spec, tool in pairs:
            full = f"{spec.prefix}.{tool.name}"
            self.offers.append(Offer(server=spec.name, tool=tool, full=full, safe=safe[full, spec.name]))
        self._by_name: dict[str, Offer] = {}
        bare: dict[str, list[Offer]] = {}
        for offer in self.offers:
            bare.setdefault(offer.tool.name, []).append(offer)
        self._by_name = {name: found[0] for name, found in bare.items() if len(found) == 1}
        self._by_name |= {offer.full: offer for offer in reversed(self.offers)}
        self._by_name |= {offer.safe: offer for offer in self.offers}

    def resolve(self, name: str) -> Offer | None:
        """The tool a model means by `name`: its safe name, its full name, or a bare name that only one server has."""
        return self._by_name.get(name)


def safe_names(names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """For each (full name, server) a name of at most :data:`MAX_NAME` of ``[a-zA-Z0-9_-]``, each another.

    A name that is too long, or that another took before it in sorted order, ends in a digest of its own.
    """
    out: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for full, server in sorted(set(names)):
        safe = _UNSAFE.sub("_", full)
        if len(safe) > MAX_NAME or safe in taken:
            digest = hashlib.sha256(f"{server}\0{full}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
            safe = f"{safe[: MAX_NAME - 9]}_{digest}"
        taken.add(safe)
        out[full, server] = safe
    return out
