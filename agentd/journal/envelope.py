"""Envelopes: ``{v: 1, kind, id, seq, ts, instance, state}``, encoded once; pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from json import JSONEncoder, encoder
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from agentd.errors import StoreError
from agentd.ports.store import Envelope, Put

VERSION = 1

State = dict[str, Any]
"""What an entity is: a JSON object. None in its place is a tombstone."""


def _encoder() -> Callable[[Any], str]:
    """JSON in ASCII, which keeps lone surrogates storable everywhere; states are trees, so cycles are not looked for.

    `JSONEncoder.encode` makes its C part anew for each call, which is half of the cost of a small record.
    """
    plain = JSONEncoder(separators=(",", ":"), check_circular=False)
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    chunks = make(None, plain.default, quoted, None, ":", ",", False, False, True)
    return lambda value: "".join(chunks(value, 0))


_encode = _encoder()
_word = lru_cache(64)(quoted)
"""For the few words that every record repeats."""


class UnknownVersion(StoreError):
    """A record was written by a newer agentd, or is none of ours. It is left alone."""

    code = "store_version"
    retryable = False
    template = (
        "the record {key} has envelope version {version}, this agentd reads version 1: "
        "run the version that wrote it, or start with another store.prefix"
    )


class TooLarge(StoreError):
    """A record exceeds `store.max_value_bytes`."""

    code = "store_too_large"
    retryable = False
    template = (
        "the record {key} has {size} bytes, more than store.max_value_bytes ({limit}): "
        "keep large values as artifacts, or raise the limit"
    )


def seal(key: str, kind: str, id: str, seq: int, state: State | None, ts: float, instance: str) -> Put:
    """One record as a write. Raises TypeError or ValueError for a state that is not JSON."""
    envelope: Envelope = {"v": VERSION, "kind": kind, "id": id, "seq": seq, "ts": ts, "instance": instance,
                          "state": state}  # fmt: skip
    text = (
        f'{{"v":{VERSION},"kind":{_word(kind)},"id":{quoted(id)},"seq":{seq},"ts":{ts!r},'
        f'"instance":{_word(instance)},"state":{_encode(state)}}}'
    )
    return Put(key, seq, envelope, text)


def unseal(key: str, envelope: Envelope) -> tuple[str, int, State | None]:
    """``(id, seq, state)`` of what a store gave back. Raises :class:`UnknownVersion`, StoreError for no envelope."""
    if envelope.get("v") != VERSION:
        raise UnknownVersion(key=key, version=envelope.get("v"))
    id, seq, state = envelope.get("id"), envelope.get("seq"), envelope.get("state")
    if not isinstance(id, str) or not isinstance(seq, int) or not (state is None or isinstance(state, dict)):
        raise StoreError(f"the record {key} is no envelope of agentd; it is left as it is", key=key)
    return id, seq, state
