"""Finds the recordings under a logdir: which files are traces, and which run each one belongs to.

A run is a directory, named relative to the logdir ("." for the logdir itself), as TensorBoard names runs. Files that
torch.profiler names (`*.pt.trace.json[.gz]`) are taken by their name; any other JSON is taken where its first bytes
look like a trace, because `export_chrome_trace("trace.json")` is as common.
"""

import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SNIFFED_BYTES = 64 * 1024
"""How much of an unknown JSON file is inflated to learn whether it is a trace: headers of Kineto traces with a long
`distributedInfo` stay below 8 KiB, so this is ample."""

SKIPPED_DIRECTORIES = frozenset({".git", "node_modules"})

SIDECAR_ENDING = ".bottlenecks.json"
"""What a report is called that lies beside its trace, behind the trace's whole name; it is no trace itself."""

_PROFILER_NAME = re.compile(r"\.pt\.trace\.json(\.gz)?$")
_POSSIBLE_NAME = re.compile(r"\.(json|trace)(\.gz)?$")
_LIST_OF_OBJECTS = re.compile(rb"\s*\[\s*\{")
_PHASE = re.compile(rb'"ph"\s*:\s*"[a-zA-Z]"')
_URL = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")


@dataclass(frozen=True)
class Recording:
    """One trace file as it was when it was seen; a file that changed since is another Recording.

    `run` and `source` are for people and are always valid Unicode; `path` is for opening and is absolute.
    """

    path: str
    run: str
    source: str
    size: int  # bytes
    mtime_ns: int


@dataclass(frozen=True)
class Listing:
    """What one walk found: recordings sorted by run, then source; problems as sentences."""

    recordings: tuple[Recording, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Root:
    """A place to look in. Run names get `name/` in front where the name is not empty."""

    path: str
    name: str = ""

    def resolved(self) -> "Root":
        """The same place as an absolute path, whatever becomes the working directory; a URL stays as it is."""
        if _URL.match(self.path):
            return self
        return Root(os.path.realpath(os.path.expanduser(self.path)), self.name)


def parse_logdir_spec(spec: str) -> tuple[Root, ...]:
    """The roots of `--logdir_spec`, by TensorBoard's own rule: `name:path`, or `path` alone, separated by commas.

    A part that starts with a slash, a drive letter or a scheme (`s3://`) is a path even where it holds a colon.
    """
    roots = []
    for part in filter(None, spec.split(",")):
        named = ":" in part and not (part.startswith("/") or _URL.match(part) or os.path.splitdrive(part)[0])
        name, _, path = part.partition(":") if named else ("", "", part)
        roots.append(Root(path, name))
    return tuple(roots)


def scan(root: str | os.PathLike[str], name: str = "") -> Listing:
    """Walks one local directory (or takes one file) and lists its recordings. Never raises for what lies there.

    Symbolic links are followed, each real directory is entered once, and a directory reached by its own name is
    preferred to one reached by a link. What could not be looked at is a sentence in `problems`.
    """
    given = os.fspath(root)
    if _URL.match(given):
        return Listing((), (f"{_shown(given)}: only local directories are read today; copy the traces to one.",))
    top = os.path.realpath(os.path.expanduser(given))
    try:
        is_directory = stat.S_ISDIR(os.stat(top).st_mode)
    except OSError as error:
        return Listing((), (f"{_shown(given)}: nothing could be read here ({error.strerror}).",))
    if not is_directory:
        alone = _recording(top, os.path.dirname(top), name)
        return Listing((alone,) if alone else (), ())
    problems: list[str] = []
    seen = (_recording(path, top, name) for path in _files(top, problems))
    found = [recording for recording in seen if recording and _is_trace(recording)]
    return Listing(tuple(sorted(found, key=_order)), tuple(problems))


def scan_all(roots: Sequence[Root]) -> Listing:
    """The listings of several roots as one."""
    listings = [scan(root.path, root.name) for root in roots]
    recordings = sorted((recording for listing in listings for recording in listing.recordings), key=_order)
    return Listing(tuple(recordings), tuple(problem for listing in listings for problem in listing.problems))


def _order(recording: Recording) -> tuple[str, str, str]:
    return recording.run, recording.source, recording.path


def _files(top: str, problems: list[str]) -> Iterator[str]:
    """Paths of the files below `top` whose names may be a trace's; links to directories are entered last."""
    entered: set[tuple[int, int]] = set()
    directories, links = [top], list[str]()
    while directories or links:
        directory = directories.pop() if directories else links.pop(0)
        try:
            status = os.stat(directory)
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            with os.scandir(directory) as listing:
                entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
        except FileNotFoundError:
            continue  # it went away while we walked
        except OSError as error:
            problems.append(f"{_shown(directory)}: this directory could not be read ({error.strerror}).")
            continue
        for entry in entries:
            if _is_directory(entry):
                if entry.name not in SKIPPED_DIRECTORIES:
                    (links if entry.is_symlink() else directories).append(entry.path)
            elif _POSSIBLE_NAME.search(entry.name) and not entry.name.endswith(SIDECAR_ENDING):
                yield entry.path


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads nowhere, or in a circle


def _recording(path: str, top: str, name: str) -> Recording | None:
    """The file as a recording; None where it is gone by now or is no regular file (opening a pipe would hang)."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    directory, source = os.path.split(path)
    inner = Path(os.path.relpath(directory, top)).as_posix()
    run = inner if not name else name if inner == "." else f"{name}/{inner}"
    return Recording(path, _shown(run), _shown(source), status.st_size, status.st_mtime_ns)


def _shown(name: str) -> str:
    """A file name as valid Unicode: names on disk are bytes, and messages refuse what is not text."""
    return os.fsencode(name).decode("utf-8", "replace")


def _is_trace(recording: Recording) -> bool:
    if _PROFILER_NAME.search(recording.path):
        return True
    try:
        return _looks_like_a_trace(recording.path, recording.size, recording.mtime_ns)
    except OSError:
        return False


@lru_cache(maxsize=65536)
def _looks_like_a_trace(path: str, size: int, mtime_ns: int) -> bool:
    """Whether the first bytes look like a Chrome trace; size and time are only there to forget a changed file.

    Raises:
        OSError: the file cannot be read.
    """
    head = _first_bytes(path)
    if b'"traceEvents"' in head or (b'"schemaVersion"' in head and b'"deviceProperties"' in head):
        return True
    return bool(_LIST_OF_OBJECTS.match(head) and _PHASE.search(head))


def _first_bytes(path: str) -> bytes:
    """At most SNIFFED_BYTES of the content, inflated where it is gzip, as far as an unfinished file goes."""
    with open(path, "rb") as file:
        raw = file.read(SNIFFED_BYTES)
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        return zlib.decompressobj(wbits=31).decompress(raw, SNIFFED_BYTES)
    except zlib.error:
        return b""
