"""``agentd store ls|cat|export|import|verify``: look inside the durable state, and move it between stores.

All but `import` open the store for reading only and may run beside a daemon. Flags behind the operands are those of
the configuration (``--config``, ``--store.file.path``, …); ``--path DIR`` is short for ``--store.file.path DIR``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from agentd.cli.output import emit, tell
from agentd.clock import SystemClock
from agentd.config import lifetime
from agentd.config.load import Loaded, load
from agentd.errors import EXIT_FAILED, EXIT_OK, ConfigError, StoreError, UsageError
from agentd.journal.envelope import unseal
from agentd.journal.keys import Keys, parse
from agentd.ports.host import Clock, Log, Secrets
from agentd.ports.store import Envelope, Put, Store, StoreSpec

USAGE = """usage: agentd store COMMAND [--path DIR | configuration flags]

  ls [KIND]       keys, with sequence and time of the last write
  cat KEY         one record; KEY as ls prints it, or KIND/ID of this instance
  export          every record, one JSON object a line
  import [FILE]   records of an export into an empty store (- or nothing: from stdin)
  verify          read everything and tell what is damaged; exit 1 if anything is
"""


Command = Callable[..., Awaitable[int]]


class Target(NamedTuple):
    """The store that the configuration names."""

    spec: StoreSpec
    options: Any
    keys: Keys


class Host:
    """What an opened store may use; warnings go to stderr as events."""

    def __init__(self, loaded: Loaded, instance: str) -> None:
        self.instance = instance
        self.clock: Clock = SystemClock()
        self.log: Log = _log
        self.secrets: Secrets = loaded.secrets
        self.environ = loaded.environ


def _log(event: str, /, *, level: str = "info", msg: str = "", **fields: Any) -> None:
    tell(event, level=level, msg=msg, **fields)


def main(args: list[str], environ: Mapping[str, str]) -> int:
    """Do one command; its exit code. Raises UsageError, ConfigError, StoreError."""
    if args and args[0] in ("-h", "--help", "help"):
        return emit(USAGE)
    split = next((at for at, word in enumerate(args) if word.startswith("--")), len(args))
    command, operands = _command(args[:split])
    loaded = load(list(_flags(args[split:])), environ)
    if loaded.document is None:
        raise ConfigError(findings=[(finding.path, finding.msg) for finding in loaded.errors])
    instance = lifetime.instance(loaded.document, loaded.environ)
    target = _target(loaded, instance)
    opener = target.spec.open if command is _import else target.spec.view or target.spec.open

    async def run() -> int:
        async with opener(target.options, Host(loaded, instance)) as store:
            return await command(store, target, *operands)

    return asyncio.run(run())


def _command(words: list[str]) -> tuple[Command, list[str]]:
    commands: dict[str, tuple[Command, int, int]] = {
        "ls": (_ls, 0, 1),
        "cat": (_cat, 1, 1),
        "export": (_export, 0, 0),
        "import": (_import, 0, 1),
        "verify": (_verify, 0, 0),
    }
    if not words or words[0] not in commands:
        raise UsageError(f"agentd store needs a command: {', '.join(commands)}; agentd store --help explains them")
    command, least, most = commands[words[0]]
    if not least <= len(words) - 1 <= most:
        raise UsageError(f"agentd store {words[0]}: wrong number of arguments; agentd store --help explains them")
    return command, words[1:]


def _flags(flags: Iterable[str]) -> Iterator[str]:
    for flag in flags:
        yield f"--store.file.path{flag[6:]}" if flag.partition("=")[0] == "--path" else flag


def _target(loaded: Loaded, instance: str) -> Target:
    assert loaded.document is not None
    section = loaded.document.store
    kind = section.kind or "file"
    spec = loaded.plugins.stores.get(kind)
    if spec is None:
        raise ConfigError(findings=[("store.kind", loaded.plugins.missing("stores", kind))])
    if not spec.durable:
        raise UsageError(f"a store of the kind {kind} ends with its process: there is nothing to look at")
    options = getattr(section, kind, None)
    return Target(spec, options if options is not None else spec.options(), Keys(section.prefix, instance))


async def _ls(store: Store, target: Target, kind: str | None = None) -> int:
    async for page in store.scan(""):
        lines = (_line(key, envelope) for key, envelope in page if kind in (None, envelope.get("kind")))
        if code := emit("".join(lines)):
            return code
    return EXIT_OK


def _line(key: str, envelope: Envelope) -> str:
    ts = envelope.get("ts")
    when = datetime.fromtimestamp(ts, UTC).isoformat(timespec="milliseconds") if isinstance(ts, int | float) else "-"
    return f"{key}\t{envelope.get('seq')}\t{when}\n"


async def _cat(store: Store, target: Target, key: str) -> int:
    envelope = await store.get(key)
    if envelope is None:
        kind, _, id = key.partition("/")
        envelope = await store.get(target.keys.key(kind, id))
    if envelope is None:
        raise StoreError(f"there is no record {key}: agentd store ls lists them")
    return emit(json.dumps(envelope, indent=2) + "\n")


async def _export(store: Store, target: Target) -> int:
    async for page in store.scan(""):
        lines = (json.dumps({"key": key, "envelope": e}, separators=(",", ":")) + "\n" for key, e in page)
        if code := emit("".join(lines)):
            return code
    return EXIT_OK


async def _import(store: Store, target: Target, file: str = "-") -> int:
    if await store.list("", limit=1):
        raise StoreError("the store is not empty: import into an empty one, or move its directory away first")
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")  # noqa: ASYNC240
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{file} cannot be read: {error}") from error
    puts = [_put(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    await store.commit(puts)
    return emit(f"imported {len(puts)} records\n")


def _put(number: int, line: str) -> Put:
    try:
        record = json.loads(line)
        key, envelope = record["key"], record["envelope"]
        wrong = _judge(key, envelope)
    except (ValueError, TypeError, KeyError, AttributeError):
        wrong = "no record of an export"
    if wrong:
        raise StoreError(f"line {number}: {wrong}; nothing was imported")
    return Put(key, envelope["seq"], envelope)


async def _verify(store: Store, target: Target) -> int:
    count, wrong = 0, []
    async for page in store.scan(""):
        count += len(page)
        wrong += [f"{key}: {why}\n" for key, envelope in page if (why := _judge(key, envelope))]
    return emit("".join(wrong)) or EXIT_FAILED if wrong else emit(f"ok: {count} records\n")


def _judge(key: str, envelope: Envelope) -> str:
    """What is wrong with a record, empty if nothing is."""
    try:
        id, seq, _ = unseal(key, envelope)
        _, instance, kind, named = parse(key)
    except StoreError as error:
        return error.message
    except ValueError as error:
        return str(error)
    if (kind, named, instance) != (envelope.get("kind"), id, envelope.get("instance")) or seq < 1:
        return "the envelope does not belong to its key"
    return ""
