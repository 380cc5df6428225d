"""Which part of agentd serves a command line: a subcommand, a probe, or a run."""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentd.cli.output import emit, tell
from agentd.errors import EXIT_CONFIG, EXIT_FAILED, EXIT_OK, AgentdError, ConfigError, UsageError, exit_code
from agentd.telemetry.descriptors import hold_standard_descriptors

if TYPE_CHECKING:
    from agentd.config.load import Loaded

COMMANDS = {
    "plugins": "agentd.cli.plugins",
    "store": "agentd.cli.store",
    "workflow": "agentd.cli.workflow",
    **dict.fromkeys(("run", "status", "cancel", "signal", "answer", "pause", "resume"), "agentd.cli.operate"),
}
"""A module that serves several commands gets the command as its first argument."""


def dispatch(args: Sequence[str]) -> int:
    """The exit code of `args`; every deliberate error is told in one line."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # code that plugins.allow does not govern; and 10 ms
    if 1 in hold_standard_descriptors():
        _fail_writes()
    try:
        code = _command(args[0], list(args[1:])) if args and not args[0].startswith("-") else _main(args)
    except AgentdError as fault:
        _explain(fault)
        code = exit_code(fault)
    except OSError:
        if emit("") == EXIT_OK:
            raise
        return EXIT_FAILED  # a command's own write met a closed or full stdout
    except KeyboardInterrupt:
        code = EXIT_FAILED
    return emit("") or code if code == EXIT_OK else code


def _fail_writes() -> None:
    """What is written to a stdout that was closed is lost, and has to be noticed: a read-only descriptor refuses it."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 1)
    os.close(null)


def _command(name: str, rest: list[str]) -> int:
    if name not in COMMANDS:
        from agentd.config.findings import nearest

        close = nearest(name, COMMANDS)
        raise UsageError(f"there is no command {name!r}{close}; commands: {', '.join(COMMANDS)}; flags: see --help")
    module = importlib.import_module(COMMANDS[name])
    shared = list(COMMANDS.values()).count(COMMANDS[name]) > 1
    return int(module.main([name, *rest] if shared else rest, os.environ))


def _main(args: Sequence[str]) -> int:
    from agentd.config.load import load

    gc.disable()  # what a start makes is no garbage
    loaded = load(args)
    gc.freeze()
    gc.enable()
    if loaded.invocation.probe:
        from agentd.cli import probes

        return probes.run(loaded)
    if not report(loaded):
        return EXIT_CONFIG
    _ready(loaded)
    run = importlib.import_module("agentd.cli.run")
    return int(run.main(loaded.invocation, loaded))


def report(loaded: Loaded) -> bool:
    """Tell every finding, one line each; False when one of them is an error."""
    for finding in loaded.findings:
        tell("config.warning" if finding.level == "warning" else "config.invalid", path=finding.path, msg=finding.msg)
    return not loaded.errors


def _ready(loaded: Loaded) -> None:
    """What a start needs beyond a valid configuration: something to do, a model to do it with, every secret."""
    from agentd.config.ready import findings

    if loaded.invocation.prompt_missing:
        import getpass

        loaded.secrets.prompt(loaded.value, getpass.getpass)
    if wrong := findings(loaded):
        raise ConfigError(findings=[(finding.path, finding.msg) for finding in wrong])


def _explain(fault: AgentdError) -> None:
    if isinstance(fault, ConfigError):
        for path, message in fault.findings:
            tell("config.invalid", path=path, msg=message)
    elif isinstance(fault, UsageError):
        tell("config.invalid", path="", msg=fault.message)
    else:
        tell("proc.exit", code=exit_code(fault), err={"type": fault.code, "message": fault.message})
