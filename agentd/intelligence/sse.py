"""Event streams, read whole: some gateways answer with one although JSON was asked for, and label it as they like."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(r"\r\n|\r|\n")
_STARTS = ("data:", "event:", "id:", "retry:", ":")


class Event(NamedTuple):
    """One event: its name (``message`` unless given) and its data lines joined."""

    name: str
    data: str


def is_stream(text: str) -> bool:
    """Whether `text` is an event stream by its own look; labels are not to be trusted."""
    return text.lstrip().startswith(_STARTS)


def events(text: str) -> list[Event]:
    """The events of `text` that carry data, in order; comments and `retry` are skipped. A last one that no empty line
    ended counts: its reader will see whether it is whole."""
    found: list[Event] = []
    name, data = "", list[str]()
    for line in [*_LINE.split(text.lstrip("\ufeff")), ""]:
        if not line:
            if data:
                found.append(Event(name or "message", "\n".join(data)))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    return found
