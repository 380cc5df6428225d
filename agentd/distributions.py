"""Find plugins among the installed distributions, without importing any.

Reads entry points and metadata only. A distribution that cannot be read, has no name or wants another agentd is
reported with its flaw and never stops the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint, PackageMetadata, distributions

from agentd import __version__

GROUP = "agentd.plugins"

_REQUIREMENT = re.compile(r"agentd\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;.*)?$", re.IGNORECASE)
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?\s*$")


@dataclass(frozen=True, slots=True)
class Found:
    """An entry point of the group: the plugin's name, who installed it, what it names, and why it cannot be used."""

    name: str
    dist: str
    version: str
    value: str
    flaw: str = ""


def find(installed: Iterable[Distribution] | None = None) -> list[Found]:
    """Every entry point of the group ``agentd.plugins``, by name; the first of a distribution on the path wins.

    Two distributions that claim one plugin name are both flawed: which of them is meant is not ours to guess.
    """
    seen: set[str] = set()
    found: list[Found] = []
    for dist in distributions() if installed is None else installed:
        if not _concerns_us(dist):
            continue
        metadata = _metadata(dist)
        if (name := _name(dist, metadata)) not in seen:
            seen.add(name)
            found.extend(_plugins(dist, name, metadata))
    return sorted(_refuse_twins(found), key=lambda f: (f.name, f.dist))


def admits(clauses: str, version: str = __version__) -> bool:
    """Whether `version` meets a version specifier such as ``>=1.1,<2``; a form we cannot read is left to pip."""
    have = _release(version)
    return all(_meets(have, *m.groups()) for c in clauses.split(",") if (m := _CLAUSE.match(c)))


def _concerns_us(dist: Distribution) -> bool:
    """Whether its entry points name our group; parsing the metadata of every distribution would take 50 ms."""
    try:
        return f"[{GROUP}]" in (dist.read_text("entry_points.txt") or "")
    except Exception:
        return False


def _metadata(dist: Distribution) -> PackageMetadata | Exception:
    """Read once: each look at the property parses the whole file."""
    try:
        return dist.metadata
    except Exception as error:
        return error


def _name(dist: Distribution, metadata: PackageMetadata | Exception) -> str:
    """The distribution's name, or for want of one the name of its directory."""
    name = None if isinstance(metadata, Exception) else metadata["Name"]
    path = getattr(dist, "_path", None)
    return re.sub(r"[-_.]+", "-", name).lower() if name else getattr(path, "name", None) or "(nameless)"


def _plugins(dist: Distribution, name: str, metadata: PackageMetadata | Exception) -> Iterator[Found]:
    """The plugins of one distribution."""
    version = "?"
    try:
        if isinstance(metadata, Exception):
            raise metadata
        version = metadata["Version"] or "?"
        flaw = _flaw(metadata)
        points: list[EntryPoint] = [p for p in dist.entry_points if p.group == GROUP]
    except Exception as error:
        yield Found(name, name, version, "", f"its metadata cannot be read: {type(error).__name__}: {error}")
        return
    for point in points:
        bad = flaw or ("" if EntryPoint.pattern.match(point.value) else "the entry point is not <module>[:<object>]")
        yield Found(point.name, name, version, point.value, bad)


def _flaw(metadata: PackageMetadata) -> str:
    for field in ("Name", "Version"):
        if not metadata[field]:
            return f"its metadata has no {field}; reinstall it"
    for requirement in metadata.get_all("Requires-Dist") or ():
        wants = _REQUIREMENT.match(requirement)
        if wants and not admits(wants[1]):
            return f"it needs agentd{wants[1].strip()}, this is {__version__}; install a version of it that fits"
    return ""


def _refuse_twins(found: list[Found]) -> Iterator[Found]:
    owners: dict[str, list[str]] = {}
    for f in found:
        owners.setdefault(f.name, []).append(f"{f.dist} {f.version}")
    for f in found:
        names = owners[f.name]
        flaw = f"the name {f.name} is claimed by {' and '.join(names)}; uninstall one" if len(names) > 1 else f.flaw
        yield Found(f.name, f.dist, f.version, f.value, flaw)


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(n) for n in numbers[0].split(".")) if numbers else ()


def _meets(have: tuple[int, ...], op: str, wanted: str, star: str | None) -> bool:
    want = _release(wanted)
    prefix = have[: len(want)] + (0,) * (len(want) - len(have))
    if star:
        return (prefix == want) is (op == "==")
    if op == "~=":
        return prefix >= want and have[: len(want) - 1] == want[:-1]
    width = max(len(have), len(want))
    a, b = have + (0,) * (width - len(have)), want + (0,) * (width - len(want))
    return {">=": a >= b, "<=": a <= b, "==": a == b, "!=": a != b, ">": a > b, "<": a < b}[op]
