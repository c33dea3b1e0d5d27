"""Stores reports and summaries of ranks in the user's cache directory: an unchanged trace is not read twice.

There is one file per entry. The name of the file is a hash of the trace's identity. The file contains the entry, and a
hash of its name and the entry. Other users may be able to write to the directory. Therefore, a file is used only if it
belongs to this user and nobody else may change it. Files are replaced atomically, so any number of processes may use
one directory. After an error, the trace is read again: no exception is raised.

Identifies the file and the code that a report comes from. A report is reused only if both are unchanged.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from google.protobuf.message import DecodeError

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.persistence import cache_directory, is_own, read_own, write_atomically
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.paths import filesystem_of
from tb_bottleneck.sources.torch_trace.log_file import names_beside
from tb_bottleneck.version import __version__

PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class FileIdentity:
    """The state of a file at one moment. `path` is real and absolute.

    `tag` is the version of the file in a remote store, empty for local files. `beside` identifies the logs of
    torch.compile in the folder of the file.
    """

    path: str
    size: int  # bytes
    mtime_ns: int
    tag: str = ""  # version of the file in a remote store
    beside: str = ""  # logs of torch.compile in its folder (names_beside)


def identity_of(path: str) -> FileIdentity | None:
    """Returns the current identity of the file `path`; None if it is not a regular file or cannot be accessed."""
    try:
        storage = filesystem_of(path)
        real = storage.absolute(path)
        status = storage.status(real)
    except (OSError, ValueError, Unreadable):
        return None
    if status.kind != "file":
        return None
    return FileIdentity(real, status.size, status.mtime_ns, status.tag, names_beside(path))


@cache
def code_version() -> str:
    """Returns the version of the package and a hash of its code and its TOML files. If either changes, stored reports
    are not used any more."""
    digest = hashlib.sha256()
    for path in sorted(path for ending in ("*.py", "*.toml") for path in PACKAGE.rglob(ending)):
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode(errors="surrogateescape"))
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{__version__}-{digest.hexdigest()[:16]}"


MAX_BYTES = 256 << 20  # a report takes about 10 KB: space for about 25,000
MAX_REPORT_BYTES = 4 << 20  # a larger report is not stored
# The directory is listed again only after MAX_BYTES / SLACK bytes were added, because listing takes time.
SLACK = 16
ABANDONED_SECONDS = 3600.0  # an older temporary file was left by a process that was killed

_ENTRY = re.compile(r"[0-9a-f]{32}\.(?:report|summary)")
_TEMPORARY = re.compile(r"[0-9a-f]{32}\.(?:report|summary)\..*\.tmp")
_DIGEST_BYTES = 32


class Store:
    """The reports in one directory. Not thread-safe; any number of processes may use one directory."""

    def __init__(self, directory: Path, version: str, max_bytes: int = MAX_BYTES) -> None:
        self._directory = directory
        self._version = version
        self._max_bytes = max_bytes
        self._added = max_bytes  # so that the first report checks the free space

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Store | None":
        """Returns the store of the user, or None if TB_BOTTLENECK_CACHE is "off" or there is no cache directory."""
        directory = cache_directory(environment)
        try:
            return cls(directory, code_version()) if directory is not None else None
        except OSError:
            return None  # the package's own files cannot be read

    def get(self, identity: FileIdentity) -> Report | None:
        """Returns the stored report of the file with this identity, made by this version of the code; None if there is
        none."""
        content = self._read(self._entry(identity, "report"))
        try:
            return Report.FromString(content) if content is not None else None
        except DecodeError:
            return None

    def put(self, identity: FileIdentity, report: Report) -> None:
        """Stores the report of the file with this identity. Does nothing if it is too large or cannot be written."""
        self._write(self._entry(identity, "report"), report.SerializeToString())

    def get_summary(self, identity: FileIdentity) -> bytes | None:
        """Returns the encoded summary of the rank that this file records, or None if none is stored."""
        return self._read(self._entry(identity, "summary"))

    def put_summary(self, identity: FileIdentity, summary: bytes) -> None:
        """Stores the encoded summary of the rank that the file with this identity records."""
        self._write(self._entry(identity, "summary"), summary)

    def _read(self, entry: Path) -> bytes | None:
        try:
            content = _unpacked(entry, read_own(entry, MAX_REPORT_BYTES + 1))
        except OSError:
            return None
        with contextlib.suppress(OSError):
            if content is None:
                entry.unlink()
            else:
                os.utime(entry, follow_symlinks=False)  # the least recently used entry is removed first
        return content

    def _write(self, entry: Path, content: bytes) -> None:
        data = _digest(entry, content) + content
        if len(data) > MAX_REPORT_BYTES:
            return
        with contextlib.suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(entry, data)
            self._added += len(data)
            if self._added * SLACK > self._max_bytes:
                self._added = 0
                self._make_room()

    def _entry(self, identity: FileIdentity, kind: str = "report") -> Path:
        state = (identity.size, identity.mtime_ns, identity.tag, identity.beside, self._version, "")
        key = "\0".join(map(str, state)).encode("utf-8", "replace") + os.fsencode(identity.path)
        return self._directory / f"{hashlib.sha256(key).hexdigest()[:32]}.{kind}"

    def _make_room(self) -> None:
        """Removes the least recently used entries, until there is space for the entries that will be added before the
        next check."""
        entries: list[tuple[float, int, str]] = []
        with os.scandir(self._directory) as listing:
            for entry in listing:
                with contextlib.suppress(FileNotFoundError):  # another process removed it
                    status = entry.stat(follow_symlinks=False)
                    if not is_own(status):
                        continue  # other users may put files of any size here, which cannot be removed
                    if _ENTRY.fullmatch(entry.name):
                        entries.append((status.st_mtime, status.st_size, entry.path))
                    elif _TEMPORARY.fullmatch(entry.name) and time.time() - status.st_mtime > ABANDONED_SECONDS:
                        os.unlink(entry.path)
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self._max_bytes - self._max_bytes // SLACK:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size


def _unpacked(entry: Path, data: bytes) -> bytes | None:
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return content if _digest(entry, content) == digest else None


def _digest(entry: Path, content: bytes) -> bytes:
    """Returns a hash of the entry's file name and its content. Because of the name, a renamed entry is recognised as
    invalid."""
    return hashlib.sha256(entry.name.encode() + content).digest()
