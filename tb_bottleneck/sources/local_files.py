"""Files on a local disk."""

import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from tb_bottleneck.sources.place import Status, shown

SKIPPED_DIRECTORIES = frozenset({".git", "node_modules"})


class Local:
    """The seam's local side. Symbolic links are followed; each real directory is entered once."""

    def absolute(self, path: str) -> str:
        """The real path."""
        return os.path.realpath(os.path.expanduser(path))

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """By the file's own number where it is open: by then another may have its name."""
        return _status(os.stat(path) if file is None else os.fstat(file.fileno()))

    def open(self, path: str) -> BinaryIO:
        """For reading."""
        return open(path, "rb")

    def walk(self, top: str, problems: list[str]) -> Iterator[tuple[str, Status | None]]:
        """Files and where they are reached; links to directories are entered last, so that own names are preferred."""
        entered: set[tuple[int, int]] = set()
        directories, links = [top], list[str]()
        while directories or links:
            directory = directories.pop() if directories else links.pop(0)
            for entry in _entries(directory, entered, problems):
                if not _is_directory(entry):
                    yield entry.path, None
                elif entry.name not in SKIPPED_DIRECTORIES:
                    (links if entry.is_symlink() else directories).append(entry.path)


LOCAL = Local()


def _entries(directory: str, entered: set[tuple[int, int]], problems: list[str]) -> list["os.DirEntry[str]"]:
    """What is in a directory that was not entered yet."""
    try:
        status = os.stat(directory)
        if (status.st_dev, status.st_ino) in entered:
            return []
        entered.add((status.st_dev, status.st_ino))
        with os.scandir(directory) as listing:
            return sorted(listing, key=lambda entry: entry.name, reverse=True)
    except FileNotFoundError:
        return []  # it went away while we walked
    except OSError as error:
        problems.append(f"{shown(directory)}: this directory could not be read ({error.strerror}).")
        return []


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads nowhere, or in a circle


def _status(found: os.stat_result) -> Status:
    kind = "directory" if stat.S_ISDIR(found.st_mode) else "file" if stat.S_ISREG(found.st_mode) else "other"
    return Status(kind, found.st_size, found.st_mtime_ns)
