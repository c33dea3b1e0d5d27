"""The interface of all kinds of storage: the status of a path, its content, a walk over the files below it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol


@dataclass(frozen=True)
class Status:
    """The status of a path. `tag` is the storage's own version of the content (an ETag), or empty."""

    kind: str  # file | directory | other (a pipe is other: opening it would block)
    size: int  # bytes
    mtime_ns: int  # 0 if unknown
    tag: str = ""


@dataclass(frozen=True)
class FoundFile:
    """A file of a walk. `path` has the names that the user sees; `real`, for opening, has no links. They differ below a
    link only."""

    path: str
    real: str
    status: Status | None = None  # None if it is not known yet


class FileSystem(Protocol):
    """A kind of storage. Methods raise OSError if an access fails, and Unreadable if it is not possible at all."""

    def absolute(self, path: str) -> str:
        """Returns the absolute path: the same text for the same file."""

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """Returns the current status, of the open file if one is given."""

    def open(self, path: str) -> BinaryIO:
        """Opens the content for reading."""

    def walk(self, top: str, problems: list[str]) -> Iterator[FoundFile]:
        """Yields the files below a directory. Adds to `problems` what cannot be listed, or is skipped."""


def display_name(name: str) -> str:
    """Returns a file name as valid Unicode: names on disk are bytes, and protobuf messages refuse invalid text."""
    return os.fsencode(name).decode("utf-8", "replace")
