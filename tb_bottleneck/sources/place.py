"""What every kind of storage offers: the status of a path, its content, a walk over the files below it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol


@dataclass(frozen=True)
class Status:
    """What is at a path. `tag` is what the store itself calls this version of the content (an ETag), empty for none."""

    kind: str  # file | directory | other; a pipe is other, and would hang whoever opens it
    size: int  # bytes
    mtime_ns: int  # 0 where the store does not tell
    tag: str = ""


class Place(Protocol):
    """One way to get at files. All raise OSError where it does not work, and Unreadable where it cannot."""

    def absolute(self, path: str) -> str:
        """The same place, whatever becomes the working directory, and the same text for the same file."""

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """What is there now; of the file that is open where there is one."""

    def open(self, path: str) -> BinaryIO:
        """The content, to be read from the beginning."""

    def walk(self, top: str, problems: list[str]) -> "Iterator[tuple[str, Status | None]]":
        """The files below a directory, with what is known of them already; what cannot be listed is a problem."""


def shown(name: str) -> str:
    """A file's name as valid Unicode: names on disk are bytes, and messages refuse what is not text."""
    return os.fsencode(name).decode("utf-8", "replace")
