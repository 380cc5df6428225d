"""The command line, scanned by us: no abbreviations, and a value may begin with dashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agentd.config.findings import nearest
from agentd.config.paths import Table, key_of
from agentd.config.settings import Setting
from agentd.config.shapes import Shape

PROBES = {
    "help": "print this and exit",
    "version": "print the version and exit",
    "validate-config": "check the configuration, all findings at once",
    "config-schema": "print the JSON Schema of the configuration",
    "workflow-schema": "print the JSON Schema of a workflow",
    "capabilities": "print what this instance can do, as JSON",
    "effective-config": "print the assembled document and which layer set what",
}
SWITCHES = {
    "fresh": "start a new generation of durable state",
    "prompt-missing": "ask for missing secrets on the terminal",
}
RETIRED = {
    "mode": "set lifecycle.run_until (idle or drained), or give the workflow a start node",
    "subscribe": "write a start node of kind `subscribe` in a workflow",
    "continue": "set `conversation` on an agent step",
    "interval": "write a start node of kind `loop` in a workflow",
    "cron": "write a start node of kind `schedule` with `cron` in a workflow",
}
_SHORT = {"-h": "help", "-V": "version", "-c": "config"}
_WORDS = {key_of(word): word for word in (*PROBES, *SWITCHES)}


@dataclass(slots=True)
class Invocation:
    """What the command line asks for. `faults` are (flag, message) pairs, all of them."""

    probe: str | None = None
    fresh: bool = False
    prompt_missing: bool = False
    configs: list[str] = field(default_factory=list)
    env_files: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)


def scan(args: Sequence[str], table: Table) -> Invocation:
    """Read `args`. An unknown flag is a fault, and is taken to have a value unless a flag follows."""
    found, rest = Invocation(), _Rest(args)
    for word in rest:
        name, given = _split(word)
        if name is None:
            wrong = "unexpected argument: a value follows its flag, and one with blanks is quoted"
            found.faults.append((word, wrong))
            continue
        key = key_of(name)
        if key in _WORDS:
            _switch(found, _WORDS[key], given)
        elif key in ("config", "env"):
            value = rest.value(given)
            if value is None:
                found.faults.append((word, f"{word} needs a value: FILE"))
            else:
                (found.configs if key == "config" else found.env_files).append(value)
        else:
            _option(found, word, name, given, rest, table)
    return found


class _Rest:
    """The arguments still to be read."""

    def __init__(self, args: Sequence[str]) -> None:
        self.args, self.next = args, 0

    def __iter__(self) -> Iterator[str]:
        while self.next < len(self.args):
            self.next += 1
            yield self.args[self.next - 1]

    def value(self, given: str | None) -> str | None:
        """The value of a flag: behind its ``=``, else the next argument whatever it looks like."""
        if given is not None:
            return given
        if self.next >= len(self.args):
            return None
        self.next += 1
        return self.args[self.next - 1]

    def boolean(self, given: str | None) -> str:
        """A switch of the schema may stand alone."""
        if given is not None:
            return given
        if self.next < len(self.args) and self.args[self.next].lower() in ("true", "false"):
            self.next += 1
            return self.args[self.next - 1]
        return "true"

    def skip(self) -> None:
        """Pass over what is probably the value of an unknown flag."""
        if self.next < len(self.args) and not self.args[self.next].startswith("-"):
            self.next += 1


def _split(word: str) -> tuple[str | None, str | None]:
    stem, equals, value = word.partition("=")
    given = value if equals else None
    if stem in _SHORT:
        return _SHORT[stem], given
    if stem.startswith("--") and len(stem) > 2:
        return stem[2:], given
    return None, None


def _switch(found: Invocation, word: str, given: str | None) -> None:
    if given is not None:
        found.faults.append((f"--{word}", f"--{word} takes no value"))
    elif word in PROBES:
        found.probe = found.probe or word
    elif word == "fresh":
        found.fresh = True
    else:
        found.prompt_missing = True


def _option(found: Invocation, word: str, name: str, given: str | None, rest: _Rest, table: Table) -> None:
    flag, key = f"--{name}", key_of(name)
    if key in RETIRED:
        found.faults.append((flag, f"{flag} is retired: {RETIRED[key]}"))
        rest.skip()
        return
    map_key, adds, shape = "", False, Shape("string", "a string")
    if alias := table.aliases.get(key):
        path, adds = alias.path, alias.adds
        shape = table.by_path[path].shape if path in table.by_path else shape
    elif option := table.by_key.get(key):
        path, shape = option.path, option.shape
    elif opened := table.open_map(name):
        path, map_key = opened[0].path, opened[1]
    else:
        known = [o.path for o in table.options] + [a.flag for a in table.aliases.values()] + list(_WORDS.values())
        close = nearest(name, known) or nearest(name.replace("-", "."), known)
        found.faults.append((flag, f"unknown flag {flag}{close.replace('mean ', 'mean --')}; see --help"))
        rest.skip()
        return
    value = rest.boolean(given) if shape.kind == "boolean" and not adds else rest.value(given)
    if value is None:
        found.faults.append((flag, f"{flag} needs a value: {'NAME=URL' if adds else shape.word}"))
        return
    found.settings.append(Setting("flag", flag, path, value, key=map_key, adds=adds))
