"""What a person sees on a terminal: a line for what matters, and a last line that moves while work goes on.

Plain ANSI, no library: a job must start quickly. Colours go away with `NO_COLOR` or `TERM=dumb`, and the moving line
with them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from agentd.telemetry.vocabulary import CANONICAL

_CLEAR = "\r\x1b[K"
_COLOURS = {"debug": "2", "info": "", "warn": "33", "error": "31;1"}
_MARKS = {"debug": "·", "info": "•", "warn": "!", "error": "✗"}
_BLOCK = frozenset(CANONICAL)
_LONGEST = 160

_QUIET = {"step.start", "tool.request", "intel.call", "loop.start", "start.fired", "run.start", "config.valid",
          "turn.spawn", "restore.fresh"}  # fmt: skip
"""Shown by the moving line instead of a line of their own."""

_SENTENCES = {
    "proc.start": "agentd {version} · {instance}",
    "proc.ready": "ready",
    "mcp.connect": "connected {server} · {tools} tools",
    "mcp.connect.fail": "cannot connect {server}",
    "tool.call": "→ {tool}",
    "tool.result": "← {tool} · {bytes} bytes",
    "intel.result": "model answered · {tokens_in} in, {tokens_out} out",
    "intel.failover": "the model at {host} does not serve: {reason}",
    "turn.done": "turn {status} · {rounds} rounds, {tool_calls} tool calls, {tokens} tokens",
    "proc.exit": "exit {code}",
    "step.done": "step {step} {status}",
    "step.retry": "step {step} again in {backoff_ms} ms",
    "run.done": "run {status}",
    "human.ask": "? {question}",
    "a2a.listen": "A2A on {bound}",
    "webhooks.listen": "webhooks on {bound}",
    "drain.start": "stopping: {reason}",
    "log.dropped": "{lines} lines lost",
    "config.invalid": "{path}",
    "config.warning": "{path}",
}


class PrettyView:
    """Shows events as text; made for one terminal, used by one logger family.

    `colour` and `progress` follow the terminal (:func:`for_terminal`); `width` gives its columns whenever asked.
    """

    def __init__(
        self, *, colour: bool, progress: bool, width: Callable[[], int] = lambda: 80, verbose: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._colour, self._progress, self._width, self._verbose = colour, progress, width, verbose
        self._monotonic = monotonic
        self._runs: dict[str, float] = {}
        self._doing = ""
        self._rounds = 0
        self._tools = 0
        self._tokens = 0

    def line(self, record: dict[str, Any]) -> str:
        """The text for `record`: its line, if it has one, and the moving line anew."""
        self._follow(record)
        shown = record["event"] not in _QUIET or self._verbose or record["level"] in ("warn", "error")
        text = self._sentence(record) + "\n" if shown else ""
        if not self._progress:
            return text
        return f"{_CLEAR}{text}{self._status()}"

    def tick(self) -> str:
        """The moving line a second later, "" when nothing goes on."""
        return f"{_CLEAR}{self._status()}" if self._progress and self._runs else ""

    def _follow(self, record: Mapping[str, Any]) -> None:
        event = record["event"]
        if event == "run.start":
            self._runs[str(record.get("run"))] = self._monotonic()
            self._doing = "starting"
        elif event == "run.done":
            self._runs.pop(str(record.get("run")), None)
        elif event == "proc.exit":
            self._runs.clear()
        elif event == "step.start":
            self._doing = f"step {record.get('step')}"
        elif event == "intel.call":
            self._rounds += 1
            self._doing = "the model thinks"
        elif event == "intel.result":
            self._tokens += _count(record.get("tokens_in")) + _count(record.get("tokens_out"))
        elif event == "tool.call":
            self._tools += 1
            self._doing = f"{record.get('tool')} works"

    def _status(self) -> str:
        if not self._runs:
            return ""
        seconds = int(self._monotonic() - min(self._runs.values()))
        parts = [f"{seconds} s", _safe(self._doing)]
        if self._rounds:
            parts.append(
                f"{_plural(self._rounds, 'round')}, {_plural(self._tools, 'tool call')}, {self._tokens} tokens"
            )
        if len(self._runs) > 1:
            parts.append(f"{len(self._runs)} runs")
        return self._paint(" · ".join(parts)[: max(10, self._width() - 1)], "2")

    def _sentence(self, record: Mapping[str, Any]) -> str:
        level = record["level"]
        form = _SENTENCES.get(record["event"])
        own = {k: v for k, v in record.items() if k not in _BLOCK}
        body = form.format_map(_Words(own)) if form else f"{record['event']} {_pairs(own)}".rstrip()
        if record.get("dur_ms"):
            body += f" · {record['dur_ms'] / 1000:.1f} s"
        told = [record.get("msg") or "", (record.get("err") or {}).get("message", "")]
        body = ": ".join([part for part in (body, *told) if part])
        stamp = self._paint(record["ts"][11:19], "2")
        return f"{stamp} {self._paint(f'{_MARKS[level]} {_safe(body)}', _COLOURS[level])}"

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code and text else text


def for_terminal(fd: int, environ: Mapping[str, str], *, verbose: bool = False) -> PrettyView:
    """The view for the descriptor `fd`."""
    import shutil

    ansi = os.isatty(fd) and environ.get("TERM") != "dumb" and not environ.get("NO_COLOR")
    return PrettyView(colour=ansi, progress=ansi, width=lambda: shutil.get_terminal_size().columns, verbose=verbose)


def wanted(log_format: str, fd: int) -> bool:
    """Whether `observability.log_format` asks for this view: on a terminal only, JSON for everything else."""
    return log_format != "json" and os.isatty(fd)


class _Words(dict[str, Any]):
    def __getitem__(self, key: str) -> str:
        return _word(self.get(key, "?"))


def _pairs(own: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_word(value)}" for name, value in own.items())


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _safe(text: str) -> str:
    """`text` without what a terminal would obey: a tool's answer must not move the cursor or set the title."""
    return "".join(c if c.isprintable() else " " for c in text)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
