"""The two ways out of the command: stdout for what was asked for, stderr for events; both may be gone."""

from __future__ import annotations

import os
import sys


def emit(text: str) -> int:
    """Write `text` to stdout, whole. What was asked for and could not be delivered is a failure: exit code 1."""
    if sys.stdout is None:
        return _lost("stdout is closed")
    try:
        sys.stdout.flush()
        data = text.encode("utf-8", "backslashreplace")
        out = getattr(sys.stdout, "buffer", None)
        if out is None:
            sys.stdout.write(text)
        else:
            out.write(data)
        sys.stdout.flush()
    except (OSError, ValueError) as fault:
        _silence_stdout()
        return _lost(getattr(fault, "strerror", None) or str(fault))
    return 0


def printed(value: object) -> str:
    """A result as it is printed: a string raw plus newline, null nothing, other JSON pretty-printed."""
    import json

    if value is None:
        return ""
    return f"{value}\n" if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def tell(event: str, **fields: object) -> None:
    """Write one event to stderr before telemetry exists (or instead of it); never raises."""
    import json

    line = json.dumps({"event": event, **fields}, ensure_ascii=False, separators=(",", ":"))
    for odd in ("\x85", "\u2028", "\u2029"):
        line = line.replace(odd, f"\\u{ord(odd):04x}")
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _lost(why: str) -> int:
    message = f"the output could not be written to stdout: {why}"
    tell("proc.exit", code=1, err={"type": "output", "message": message})
    return 1


def _silence_stdout() -> None:
    """Python flushes stdout once more as it ends, and would exit 120."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass
