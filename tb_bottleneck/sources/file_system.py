"""The interface of all kinds of storage, the implementation for local disks, and the names shown for files.

A storage returns the status of a path, opens a file, and walks over the files below a directory.

torch.profiler names a trace HOST_PROCESS.TIME.pt.trace.json by default (torch/profiler/profiler.py,
tensorboard_trace_handler). Reports are shared, and names of hosts are private. Therefore the name of a host is replaced
by a short hash. The hash is the same in all recordings of the host, so that a slow host can still be distinguished from
the others.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from tb_bottleneck.base.persistence import open_regular

SHOW_VARIABLE = "TB_BOTTLENECK_SHOW_HOSTS"
"""Environment variable: with `1`, the tab shows the names of hosts."""

_DEFAULT_NAME = re.compile(r"(?P<host>.+)(?P<rest>_\d+\.[12]\d{12}(?:\d{6})?\.pt\.trace\.json(?:\.gz)?)")
_OWN_NAME = re.compile(r"rank\d+|host-[0-9a-f]{6}")  # no host: a trace of the monitor, or a name that is a hash already
_SALT = b"tb_bottleneck host:"


def host_of(source: str) -> str:
    """Returns the host's name in the file name `source`; empty if `source` does not have torch.profiler's default form,
    or begins with `rankN` or a hash instead of a host."""
    match = _DEFAULT_NAME.fullmatch(source)
    return match["host"] if match is not None and not _OWN_NAME.fullmatch(match["host"]) else ""


def without_host(source: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns the file name `source` with a hash in place of the host's name; unchanged if SHOW_VARIABLE is "1"."""
    host = host_of(source)
    if not host or environment.get(SHOW_VARIABLE) == "1":
        return source
    digest = hashlib.sha256(_SALT + host.encode("utf-8", "replace")).hexdigest()
    return f"host-{digest[:6]}{source.removeprefix(host)}"


@dataclass(frozen=True)
class Status:
    """The status of a path. `tag` is the storage's own version of the content (an ETag), or empty."""

    kind: str  # file | directory | other (a pipe is other: opening it would block)
    size: int  # bytes
    mtime_ns: int  # 0 if unknown
    tag: str = ""


@dataclass(frozen=True)
class FoundFile:
    """A file that `FileSystem.walk` found. `path` is the path that the user sees; `real` is the path to open, with
    symbolic links resolved."""

    path: str
    real: str
    status: Status | None = None  # None if it is not known yet


class FileSystem(Protocol):
    """A kind of storage. Methods raise OSError if an access fails, and Unreadable if the storage cannot be used here,
    for example because a package is missing."""

    def absolute(self, path: str) -> str:
        """Returns the absolute path of `path`. All paths to one file have the same absolute path."""

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """Returns the current status of `path`, or of the open `file` if it is given and the storage supports that."""

    def open(self, path: str) -> BinaryIO:
        """Opens the file `path` for reading."""

    def walk(self, top: str, problems: list[str]) -> Iterator[FoundFile]:
        """Yields the files below the directory `top`. Adds sentences to `problems` about directories that cannot be
        read and about paths that are skipped for safety."""


def display_name(name: str) -> str:
    """Returns a file name as valid Unicode: names on disk are bytes, and protobuf messages refuse invalid text."""
    return os.fsencode(name).decode("utf-8", "replace")


REVIEW_DIRECTORY = ".tb_bottleneck_review"
"""The directory in a logdir with the notes of reviewers and the results of trials."""

SKIPPED_DIRECTORIES = frozenset({".git", "node_modules", REVIEW_DIRECTORY})
FOLLOW_VARIABLE = "TB_BOTTLENECK_FOLLOW_LINKS"
"""Environment variable: with `1`, symbolic links that lead outside a logdir are followed too."""
LISTED_LINKS = 5


class Local:
    """Local disks. `walk` follows only symbolic links that stay inside the directory, unless FOLLOW_VARIABLE is "1":
    users who can write to a logdir must not choose which other files this process reads."""

    def __init__(self) -> None:
        self.opens_links = True
        """If True, `open` follows symbolic links. Set to False in a process that opens only files that a scan found:
        their paths have no links."""

    def absolute(self, path: str) -> str:
        """Returns the absolute path with `~` expanded and symbolic links resolved."""
        return os.path.realpath(os.path.expanduser(path))

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """Returns the status of `path`, or of the open `file` if given: another file may have that path by now."""
        return _status(os.stat(path) if file is None else os.fstat(file.fileno()))

    def open(self, path: str) -> BinaryIO:
        """Opens a regular file for reading. Raises OSError."""
        return open_regular(path, self.opens_links)

    def files_in(self, directory: str, is_wanted: Callable[[str], object]) -> list[str]:
        """Returns the paths of the regular files in `directory` whose names pass `is_wanted`, newest first.

        Symbolic links are left out. The list is empty if the directory cannot be listed.
        """
        try:
            with os.scandir(directory) as listing:
                wanted = [entry for entry in listing if is_wanted(entry.name) and entry.is_file(follow_symlinks=False)]
                return [
                    entry.path for entry in sorted(wanted, key=lambda entry: (-entry.stat().st_mtime_ns, entry.name))
                ]
        except OSError:
            return []

    def walk(self, top: str, problems: list[str]) -> Iterator[FoundFile]:
        """Yields the files below `top`. Each directory is visited once; links to directories are visited last, so that
        paths without links are preferred."""
        visited: set[tuple[int, int]] = set()
        directories, links, outside = [FoundFile(top, top)], list[FoundFile](), list[str]()
        while directories or links:
            directory = directories.pop() if directories else links.pop(0)
            for entry in _entries(directory.real, visited, problems):
                path = os.path.join(directory.path, entry.name)
                real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                if not _is_inside(real, top) and not _follows():
                    outside.append(os.path.relpath(path, top))
                elif not _is_directory(entry):
                    yield FoundFile(path, real)
                elif entry.name not in SKIPPED_DIRECTORIES:
                    (links if entry.is_symlink() else directories).append(FoundFile(path, real))
        if outside:
            problems.append(_skipped(outside))


LOCAL = Local()


def _follows(environment: Mapping[str, str] = os.environ) -> bool:
    return environment.get(FOLLOW_VARIABLE, "") == "1"


def _is_inside(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)


def _skipped(links: list[str]) -> str:
    names = ", ".join(map(_shown, links[:LISTED_LINKS])) + (", ..." if len(links) > LISTED_LINKS else "")
    count = "1 link that leads" if len(links) == 1 else f"{len(links)} links that lead"
    return f"{count} outside the logdir: skipped ({names}). Set {FOLLOW_VARIABLE}=1 to follow links to anywhere."


def _shown(link: str) -> str:
    folder, name = os.path.split(link)
    return os.path.join(display_name(folder), without_host(display_name(name)))


def _entries(directory: str, visited: set[tuple[int, int]], problems: list[str]) -> list["os.DirEntry[str]"]:
    """Returns the entries of `directory`; an empty list if the directory was visited before or cannot be read.

    Adds the device and inode numbers of the directory to `visited`. Adds a sentence to `problems` if the directory
    exists but cannot be read."""
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
