"""The kernel's own store keeps the contract."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agentd.builtin.store_memory import MemoryOptions, open_memory
from agentd.ports.store import Store
from agentd.testing.store_contract import PlainHost, StoreContract


class TestMemory(StoreContract):
    reopens = False

    def opened(self, where: Path) -> AbstractAsyncContextManager[Store]:
        return open_memory(MemoryOptions(), PlainHost())
