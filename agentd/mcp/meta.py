"""The `_meta` of every `tools/call`; pure."""

from __future__ import annotations

from typing import Any


def call_meta(
    *,
    run_id: str,
    instance: str,
    key: str,
    attempt: int = 1,
    traceparent: str | None = None,
    claim_key: str | None = None,
    shard: str | None = None,
) -> dict[str, Any]:
    """What a server may know of a call. `key` is the same for each attempt of the same step or call.

    `claim_key` is there for work under a lease, `shard` (``K/N``) in a sharded fleet.
    """
    meta: dict[str, Any] = {
        "agent/run_id": run_id,
        "agent/instance": instance,
        "agent/idempotency_key": key,
        "agent/attempt": attempt,
    }
    for name, value in (("traceparent", traceparent), ("agent/claim_key", claim_key), ("agent/shard", shard)):
        if value:
            meta[name] = value
    return meta
