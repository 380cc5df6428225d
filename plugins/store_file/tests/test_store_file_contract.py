"""The file store keeps the contract, on a disk with its writer thread and in memory without."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from agentd_store_file import FileOptions, open_file
from agentd_store_file.place import IN_MEMORY, file_system

from agentd.ports.store import Store
from agentd.testing.store_contract import PlainHost, StoreContract

MEMORY = Path("/dev/shm")


class TestFile(StoreContract):
    def opened(self, where: Path) -> AbstractAsyncContextManager[Store]:
        return open_file(FileOptions(path=str(where)), PlainHost({}))


@pytest.mark.skipif(file_system(MEMORY) not in IN_MEMORY, reason="needs a file system in memory")
class TestFileInMemory(TestFile):
    @pytest.fixture
    def tmp_path(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            yield Path(folder)
