"""Keys: ``<prefix>/<instance>/<kind>/<id>``, each segment percent-encoded but for ``[A-Za-z0-9_-]``; pure.

Ids come from models and URIs, so dots are encoded too (``..`` is a name like any other) and a lone surrogate survives.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

_PLAIN = re.compile(r"[A-Za-z0-9_-]*", re.ASCII).fullmatch
_ODD = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_DONE = re.compile(r"[A-Za-z0-9_%-]*", re.ASCII).fullmatch
_COMMON = [(odd, f"%{ord(odd):02X}") for odd in "%/.[]#{}:@="]
"""What ids of ours are made of; a few replacements are ten times quicker than a substitution per character."""


def _escape(odd: re.Match[str]) -> str:
    return "".join([f"%{byte:02X}" for byte in odd[0].encode("utf-8", "surrogatepass")])


def encode(segment: str) -> str:
    """`segment` as one segment of a key."""
    if _PLAIN(segment):
        return segment
    quick = segment
    for odd, escaped in _COMMON:
        if odd in quick:
            quick = quick.replace(odd, escaped)
    return quick if _DONE(quick) else _ODD.sub(_escape, segment)


def decode(segment: str) -> str:
    """The inverse of :func:`encode`. Raises UnicodeDecodeError (a ValueError) for bytes that are no text."""
    return unquote_to_bytes(segment).decode("utf-8", "surrogatepass")


class Keys:
    """The keys of one instance; :attr:`key` makes the key of one entity of its kind and id."""

    def __init__(self, prefix: str, instance: str) -> None:
        self.root = f"{encode(prefix)}/{encode(instance)}/"
        # A step is written as running and again, soon, as done.
        self.key = lru_cache(4096)(self._key)

    def _key(self, kind: str, id: str) -> str:
        return f"{self.root}{kind}/{encode(id)}"

    def under(self, kind: str, id_prefix: str = "") -> str:
        """What the keys of `kind` whose id begins with `id_prefix` begin with."""
        return f"{self.root}{kind}/{encode(id_prefix)}"


def parse(key: str) -> tuple[str, str, str, str]:
    """``(prefix, instance, kind, id)`` of a key. Raises ValueError for what is no key of ours."""
    parts = key.split("/")
    if len(parts) != 4:
        raise ValueError(f"{key!r} is no key: expected <prefix>/<instance>/<kind>/<id>")
    prefix, instance, kind, id = (decode(p) for p in parts)
    return prefix, instance, kind, id
