"""The file store keeps the contract."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agentd_store_file import FileOptions, open_file

from agentd.ports.store import Store
from agentd.testing.store_contract import PlainHost, StoreContract


class TestFile(StoreContract):
    def opened(self, where: Path) -> AbstractAsyncContextManager[Store]:
        return open_file(FileOptions(path=str(where)), PlainHost({}))
