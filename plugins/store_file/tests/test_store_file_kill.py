"""The file store under SIGKILL."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agentd_store_file import FileOptions, open_file

from agentd.ports.store import Store
from agentd.testing.store_contract import PlainHost
from agentd.testing.store_kill import StoreKillContract


class TestFileUnderKill(StoreKillContract):
    def opened(self, where: Path) -> AbstractAsyncContextManager[Store]:
        return open_file(FileOptions(path=str(where)), PlainHost({}))
