"""The directory: which one, its modes, its lock, and what kind of file system it is on."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from agentd.errors import StoreBusy, StoreError

DATA = "data.db"
WAL = "data.db-wal"
NEW = "data.db-new"
LOCK = ".lock"
OPEN = ".open"

IN_MEMORY = ("tmpfs", "ramfs")
"""File systems on which a write waits for no device."""

_NETWORK = ("nfs", "cifs", "smb", "9p", "ceph", "gluster", "lustre", "afs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone")


class Place(NamedTuple):
    """A directory for state. `temporary`: it may not outlive a reboot."""

    root: Path
    defaulted: bool = False
    temporary: bool = False


def locate(path: str | None, environ: Mapping[str, str]) -> Place:
    """The configured directory, else the first default that can be written. Touches nothing."""
    for named in (path, environ.get("AGENTD_STATE_DIR")):
        if named:
            return Place(Path(_expand(named, environ)).absolute())
    for root in _defaults(environ):
        if _writable(root):
            return Place(root, defaulted=True)
    return Place(Path(tempfile.gettempdir()) / f"agentd-{os.getuid()}" / "state", defaulted=True, temporary=True)


def _expand(path: str, environ: Mapping[str, str]) -> str:
    home = _home(environ)
    return str(home / path[2:]) if path.startswith("~/") and home else path


def _home(environ: Mapping[str, str]) -> Path | None:
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a container's arbitrary uid has no entry
        return None


def _defaults(environ: Mapping[str, str]) -> Iterator[Path]:
    state = environ.get("XDG_STATE_HOME")
    if state and Path(state).is_absolute():  # the XDG specification ignores relative ones
        yield Path(state) / "agentd" / "state"
    home = _home(environ)
    if home and home.is_absolute():
        yield home / ".local" / "state" / "agentd" / "state"


def _writable(root: Path) -> bool:
    """Whether `root` could be made or used, judged by its nearest existing ancestor."""
    while not root.exists():
        root = root.parent
    return root.is_dir() and os.access(root, os.W_OK | os.X_OK)


def prepare(place: Place) -> list[str]:
    """Make the directory, private; what is worth a warning about it. Raises StoreError."""
    root = place.root
    try:
        _make(root)
        mode = root.stat()
        if place.temporary and mode.st_uid != os.getuid():
            raise StoreError(f"{root} belongs to another user: set store.file.path", path=str(root))
        ours = (root / DATA).exists() or not any(root.iterdir())  # never tighten a directory that serves others too
        if mode.st_uid == os.getuid() and stat.S_IMODE(mode.st_mode) & 0o077 and ours:
            root.chmod(0o700)
    except OSError as error:
        raise StoreError(_why(root, error), path=str(root)) from error
    return list(_warnings(place))


def _make(root: Path) -> None:
    """mkdir -p with 0700 for every directory made; the umask only ever tightens."""
    missing = []
    while not root.exists():
        missing.append(root)
        root = root.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def _warnings(place: Place) -> Iterator[str]:
    if place.temporary:
        yield "no state directory can be written, so the state is in a temporary one: set store.file.path"
    kind = file_system(place.root)
    if kind and kind.startswith(_NETWORK):
        yield f"the state is on a network file system ({kind}), whose locks and flushes may lie: use a local disk"


def file_system(root: Path, mounts: str = "/proc/self/mountinfo") -> str | None:
    """The type of the file system that `root` is on, None where that cannot be told."""
    try:
        lines = Path(mounts).read_text(errors="replace").splitlines()
        target = str(root.resolve())
    except OSError:
        return None
    best, kind = -1, None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = fields[4].replace("\\040", " ")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # a later mount on the same point hides the earlier one
            best, kind = len(point), after.split()[0]
    return kind


def lock(root: Path) -> int:
    """Hold the directory for this process; the descriptor is the lock. Raises StoreBusy naming the holder's pid."""
    path = root / LOCK
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(_why(root, error), path=str(root)) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            text = f"{root} is in use by process {holder}: stop it, or give this instance its own store.file.path"
            raise StoreBusy(text, path=str(root), pid=holder) from None
        raise StoreError(_why(root, error), path=str(root)) from error
    return fd


def _why(root: Path, error: OSError) -> str:
    if error.errno == errno.EROFS:
        return f"{root} is on a read-only file system: mount a writable volume there, or set store.file.path"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{root} cannot be written by user {os.getuid()}: change its owner or mode, or set store.file.path"
    return f"{root} cannot be used for state ({error.strerror}): set store.file.path to a directory that can"
