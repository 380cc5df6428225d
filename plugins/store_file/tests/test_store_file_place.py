"""Where the state is: the chain of defaults, modes, the lock, file systems."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from agentd_store_file import FileOptions, describe, open_file, place, read_pressure

from agentd.errors import StoreBusy, StoreError
from agentd.testing.store_contract import PlainHost, envelope

OTHER = """\
22 1 0:21 / / rw - ext4 /dev/vda rw
30 22 0:40 / /mnt/state rw,relatime shared:1 - nfs4 server:/x rw
31 22 0:41 / /mnt/with\\040space rw - cifs //x/y rw
32 30 0:42 / /mnt/state/local rw - xfs /dev/vdb rw
"""


def test_the_chain(tmp_path: Path) -> None:
    home, xdg, named = str(tmp_path / "home"), str(tmp_path / "xdg"), str(tmp_path / "named")
    env = {"HOME": home, "XDG_STATE_HOME": xdg, "AGENTD_STATE_DIR": named}
    assert place.locate("/p", env) == place.Place(Path("/p"))
    assert place.locate("~/p", env).root == Path(home) / "p"
    assert place.locate(None, env) == place.Place(Path(named))
    del env["AGENTD_STATE_DIR"]
    assert place.locate(None, env) == place.Place(Path(xdg) / "agentd/state", defaulted=True)
    env["XDG_STATE_HOME"] = "relative"
    assert place.locate(None, env).root == Path(home) / ".local/state/agentd/state"
    assert not (tmp_path / "home").exists(), "looking made something"


def test_a_home_that_cannot_be_written_ends_in_the_temporary_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = place.locate(None, {"HOME": str(tmp_path / "file")})
    assert found.temporary and found.defaulted
    assert "temporary" in place._warnings(found).__next__()


def test_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        root = tmp_path / "deep" / "er" / "state"

        async def main() -> None:
            async with open_file(FileOptions(path=str(root)), PlainHost({})) as store:
                await store.put("k", 1, envelope())
                modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in root.iterdir()}
                assert modes == dict.fromkeys(["data.db", "data.db-wal", ".lock", ".open"], 0o600)

        asyncio.run(main())
        for folder in (root, root.parent, root.parent.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert sorted(f.name for f in root.iterdir()) == [".lock", "data.db"]
    finally:
        os.umask(old)


def test_tightens_its_own_directory_only(tmp_path: Path) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    own.mkdir(mode=0o755)
    shared.mkdir(mode=0o755)
    (shared / "of somebody else").write_text("")
    place.prepare(place.Place(own))
    place.prepare(place.Place(shared))
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_the_second_writer_is_told_the_pid_of_the_first(tmp_path: Path) -> None:
    options = FileOptions(path=str(tmp_path / "s"))

    async def main() -> None:
        async with open_file(options, PlainHost({})):
            with pytest.raises(StoreBusy, match=f"process {os.getpid()}: stop it"):
                async with open_file(options, PlainHost({})):
                    pass
        async with open_file(options, PlainHost({})):
            pass

    asyncio.run(main())


def test_a_path_that_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match=r"store\.file\.path"):
            place.prepare(place.Place(path))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/x", "ext4"),
        ("/mnt/state/a", "nfs4"),
        ("/mnt/stateful", "ext4"),
        ("/mnt/with space/b", "cifs"),
        ("/mnt/state/local/c", "xfs"),
    ],
)
def test_file_system(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(OTHER)
    assert place.file_system(Path(path), str(mounts)) == kind


def test_a_network_file_system_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "file_system", lambda root: "nfs4")
    host = PlainHost({})

    async def main() -> None:
        async with open_file(FileOptions(path=str(tmp_path / "s")), host):
            pass

    asyncio.run(main())
    assert [(event, fields["level"]) for event, fields in host.events] == [("store.warning", "warn")]
    assert "nfs4" in host.events[0][1]["msg"]


def test_describe_and_pressure(tmp_path: Path) -> None:
    options = FileOptions.model_validate({"path": str(tmp_path), "min_free": "1KB"})
    assert describe(options) == {"path": str(tmp_path), "defaulted": False}
    pressure = read_pressure(options)
    assert pressure and pressure.free_bytes > 0 and pressure.min_free_bytes == 1024
    assert read_pressure(FileOptions(path=str(tmp_path / "not" / "there"))) is None
