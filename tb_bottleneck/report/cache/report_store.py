"""Keeps reports on disk, in the user's cache directory, so that a trace that did not change is not read twice.

One file per report, named by a hash of what it is about; its content is a hash and the message that the hash is of.
Files are replaced as a whole, so any number of processes may use one directory. Whatever goes wrong here costs the
time to read a trace again, and nothing else: nothing is ever raised.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from google.protobuf.message import DecodeError

from tb_bottleneck.report.cache.file_identity import Identity, code_version
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.storage import cache_directory, write_atomically

BYTES_KEPT = 256 << 20  # a report takes some 10 KB: room for about 25,000
LARGEST = 4 << 20  # bytes of one report; a larger one is not kept
# How much may be added before the directory is looked at again, as a part of what is kept: looking takes a while.
SLACK = 16
ABANDONED_SECONDS = 3600.0  # a file that is half written for so long was left behind by a process that was killed

_ENTRY = re.compile(r"[0-9a-f]{32}\.report")
_HALF = re.compile(r"[0-9a-f]{32}\.report\..*\.tmp")
_DIGEST_BYTES = 32


class Store:
    """The reports in one directory. Not for several threads at once; for any number of processes."""

    def __init__(self, directory: Path, version: str, bytes_kept: int = BYTES_KEPT) -> None:
        self._directory = directory
        self._version = version
        self._bytes_kept = bytes_kept
        self._added = bytes_kept  # so the first report looks whether there is room

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Store | None":
        """The user's own; None where TB_BOTTLENECK_CACHE is "off" or there is no place for one."""
        directory = cache_directory(environment)
        try:
            return cls(directory, code_version()) if directory is not None else None
        except OSError:
            return None  # the package's own files cannot be read

    def get(self, identity: Identity) -> Report | None:
        """The report about this very file by this very code, where there is one."""
        entry = self._entry(identity)
        try:
            with open(entry, "rb") as file:
                report = _unpacked(file.read(LARGEST + 1))
        except OSError:
            return None
        with contextlib.suppress(OSError):
            if report is None:
                entry.unlink()
            else:
                os.utime(entry)  # the least recently used one goes first
        return report

    def put(self, identity: Identity, report: Report) -> None:
        """Keeps a report."""
        data = _packed(report)
        if len(data) > LARGEST:
            return
        with contextlib.suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self._entry(identity), data)
            self._added += len(data)
            if self._added * SLACK > self._bytes_kept:
                self._added = 0
                self._make_room()

    def _entry(self, identity: Identity) -> Path:
        key = f"{identity.size}\0{identity.mtime_ns}\0{identity.tag}\0{self._version}\0".encode("utf-8", "replace")
        key += os.fsencode(identity.path)
        return self._directory / f"{hashlib.sha256(key).hexdigest()[:32]}.report"

    def _make_room(self) -> None:
        """Removes what was not used for the longest, until there is room for what may come before the next look."""
        entries: list[tuple[float, int, str]] = []
        with os.scandir(self._directory) as listing:
            for found in listing:
                with contextlib.suppress(FileNotFoundError):  # another process removed it
                    status = found.stat()
                    if _ENTRY.fullmatch(found.name):
                        entries.append((status.st_mtime, status.st_size, found.path))
                    elif _HALF.fullmatch(found.name) and time.time() - status.st_mtime > ABANDONED_SECONDS:
                        os.unlink(found.path)
        held = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if held <= self._bytes_kept - self._bytes_kept // SLACK:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            held -= size


def _packed(report: Report) -> bytes:
    content = report.SerializeToString()
    return hashlib.sha256(content).digest() + content


def _unpacked(data: bytes) -> Report | None:
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        return None
    try:
        return Report.FromString(content)
    except DecodeError:
        return None
