"""`--help`: the short flags first, then every path of the schema on this machine."""

from __future__ import annotations

from agentd.config.flags import PROBES, SWITCHES
from agentd.config.paths import ALIASES, Option, Table

_HEAD = """agentd: the runtime for one durable LLM agent

usage: agentd --instruction TEXT --intelligence URL [--mcp NAME=URL]… [FLAGS]
       agentd --config FILE [FLAGS]
       agentd COMMAND …

commands: plugins, store, workflow, run, status, cancel, signal, answer, pause, resume

A flag takes the next argument, or its value behind `=`. Every path is also a variable: --limits.run.steps is
AGENTD_LIMITS_RUN_STEPS. Later beats earlier: default, file, environment, flag.
"""


def page(table: Table) -> str:
    """The whole text."""
    short = [("-h, --help", PROBES["help"]), ("-V, --version", PROBES["version"])]
    short.append(("-c, --config FILE", "read FILE (YAML or JSON; repeatable, merged)"))
    short.append(("--env FILE", "take variables from a dotenv FILE; the real environment wins"))
    short += [(f"--{word}", text) for word, text in SWITCHES.items()]
    for alias in ALIASES:
        if option := table.by_path.get(alias.path):
            what = alias.help or f"{option.path}: {option.help}"
            short.append((f"--{alias.flag}{'' if option.shape.kind == 'boolean' else ' ' + _value(option)}", what))
    probes = [(f"--{word}", text) for word, text in PROBES.items() if word not in ("help", "version")]
    paths = [(f"--{option.path} {_value(option)}", _text(option)) for option in table.options]
    return f"{_HEAD}\n{_block('flags', short)}\n{_block('probes', probes)}\n{_block('every path', paths)}"


def _value(option: Option) -> str:
    if option.shape.kind == "enum":
        return "|".join(map(str, option.shape.choices))
    if option.shape.kind == "either":
        return "TEXT"
    return (
        option.shape.word.removeprefix("a list of ").split(" ")[-1].upper()
        if option.shape.plain
        else option.shape.kind.upper()
    )


def _text(option: Option) -> str:
    default = option.default
    if default in (None, "") or option.secret:
        return option.help
    return f"{option.help} [{str(default).lower() if isinstance(default, bool) else default}]"


def _block(title: str, rows: list[tuple[str, str]]) -> str:
    return f"{title}:\n" + "".join(
        f"  {name:<34} {text}\n" if len(name) < 35 else f"  {name}\n{'':<37}{text}\n" for name, text in rows
    )
