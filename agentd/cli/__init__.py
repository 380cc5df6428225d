"""The command: argv to an exit code. Thin, and `--version` costs little more than Python itself."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the name from `typing` would import it
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run `agentd` with `argv` (else the process's own) and give its exit code. Never raises for a user's mistake."""
    code = _answer(list(sys.argv[1:] if argv is None else argv))
    if argv is None and "asyncio" not in sys.modules:
        _leave(code)  # nothing ran: taking the interpreter down would cost as much as Python's own start
    return code


def _leave(code: int) -> None:
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 1
    os._exit(code)


def _answer(args: list[str]) -> int:
    if args in (["--version"], ["-V"]):
        from agentd import __version__
        from agentd.cli.output import emit

        return emit(f"agentd {__version__}\n")
    from agentd.cli.dispatch import dispatch

    return dispatch(args)
