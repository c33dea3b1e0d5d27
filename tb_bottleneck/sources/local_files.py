"""Files on a local disk."""

import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from tb_bottleneck.schema.metadata import REVIEW_DIRECTORY
from tb_bottleneck.sources.filesystem import Status, display_name

SKIPPED_DIRECTORIES = frozenset({".git", "node_modules", REVIEW_DIRECTORY})


class Local:
    """Local disks. Symbolic links are followed; each real directory is visited once."""

    def absolute(self, path: str) -> str:
        """Returns the real path."""
        return os.path.realpath(os.path.expanduser(path))

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """Returns the status; of the open file if given, because another file may have its name by now."""
        return _status(os.stat(path) if file is None else os.fstat(file.fileno()))

    def open(self, path: str) -> BinaryIO:
        """Opens the file for reading."""
        return open(path, "rb")

    def walk(self, top: str, problems: list[str]) -> Iterator[tuple[str, Status | None]]:
        """Yields the files. Links to directories are visited last, so that real names are preferred."""
        visited: set[tuple[int, int]] = set()
        directories, links = [top], list[str]()
        while directories or links:
            directory = directories.pop() if directories else links.pop(0)
            for entry in _entries(directory, visited, problems):
                if not _is_directory(entry):
                    yield entry.path, None
                elif entry.name not in SKIPPED_DIRECTORIES:
                    (links if entry.is_symlink() else directories).append(entry.path)


LOCAL = Local()


def _entries(directory: str, visited: set[tuple[int, int]], problems: list[str]) -> list["os.DirEntry[str]"]:
    """Returns the entries of a directory, or none if it was visited before."""
    try:
        status = os.stat(directory)
        if (status.st_dev, status.st_ino) in visited:
            return []
        visited.add((status.st_dev, status.st_ino))
        with os.scandir(directory) as listing:
            return sorted(listing, key=lambda entry: entry.name, reverse=True)
    except FileNotFoundError:
        return []  # deleted during the walk
    except OSError as error:
        problems.append(f"{display_name(directory)}: this directory could not be read ({error.strerror}).")
        return []


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a dangling or circular link


def _status(result: os.stat_result) -> Status:
    kind = "directory" if stat.S_ISDIR(result.st_mode) else "file" if stat.S_ISREG(result.st_mode) else "other"
    return Status(kind, result.st_size, result.st_mtime_ns)
