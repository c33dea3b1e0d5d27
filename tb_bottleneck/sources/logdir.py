"""Finds the recordings under a logdir, and the run of each recording.

A run is a directory, named relative to the logdir ("." for the logdir itself), as in TensorBoard. Files named by
torch.profiler (`*.pt.trace.json`, plain or with the ending gz, zst or lz4) are recordings by their name. Other JSON
files, which `export_chrome_trace("trace.json")` writes, and native traces of Perfetto (`*.pftrace`) are recordings if
their first bytes look like a trace. Event files are recordings if they contain the monitor's telemetry. Pickles and
JSON files are recordings if their first bytes look like a snapshot of an allocator.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.measure import Record, replace
from tb_bottleneck.sources.file_system import LOCAL, FileSystem, FoundFile, Status, display_name, without_host
from tb_bottleneck.sources.paths import filesystem_of, first_bytes, is_url
from tb_bottleneck.sources.perfetto import is_perfetto
from tb_bottleneck.sources.snapshot import SNAPSHOT_ENDINGS, looks_like_snapshot
from tb_bottleneck.sources.telemetry.event_files import holds_telemetry, is_event_file

SNIFFED_BYTES = 64 * 1024
"""Bytes of an unknown JSON file that are read to recognise a trace. Headers of Kineto traces with a long
`distributedInfo` are below 8 KiB."""

SIDECAR_ENDING = ".bottlenecks.json"
"""Suffix of a report that is stored next to its trace. The name of the report is the full name of the trace and this
suffix. A file with this suffix is not a trace."""

JOB_ENDING = f".job{SIDECAR_ENDING}"
"""Suffix of the saved report of a job. The name of the report is the full name of the trace of the job's lowest rank
and this suffix."""

_PROFILER_NAME = re.compile(r"\.pt\.trace\.json(\.(gz|zst|lz4))?$")
_POSSIBLE_NAME = re.compile(r"\.(json|trace|pftrace|perfetto-trace)(\.(gz|zst|lz4))?$")
_LIST_OF_OBJECTS = re.compile(rb"\s*\[\s*\{")
_NUMBER = re.compile("([0-9]{1,1000})")  # Python refuses to convert much longer numbers
_PHASE = re.compile(rb'"ph"\s*:\s*"[a-zA-Z]"')

Natural = tuple[tuple[str, int], ...]


class RecordingFile(Record, frozen=True, gc=False):
    """One trace, event file or snapshot at the time of the scan. After a change of the file, the next scan returns a
    different RecordingFile for it.

    The garbage collector ignores these objects (gc=False), which refer only to text and numbers. A full collection over
    the thousands of objects of one scan would stop the server for a tenth of a second.

    `run` and `source` are for display and always valid Unicode; `source` is the file's name with the host's name
    replaced (`without_host`). `path` is for opening the file: an absolute path without symbolic links, or a URL.
    """

    path: str
    run: str
    source: str
    size: int  # bytes
    mtime_ns: int
    tag: str = ""  # the storage's own version of the file (an ETag)
    is_snapshot: bool = False  # True for a snapshot of an allocator

    def __hash__(self) -> int:
        return hash(self.path)  # a server looks up thousands of recordings per request, and a str caches its hash

    @property
    def is_telemetry(self) -> bool:
        """True for an event file with telemetry. Such a file may grow while it is read."""
        return is_event_file(self.path)

    @property
    def is_trace(self) -> bool:
        """True for a trace: neither an event file nor a snapshot."""
        return self.kind == "trace"

    @property
    def kind(self) -> str:
        """The evidence source: trace, telemetry or snapshot."""
        return "telemetry" if self.is_telemetry else "snapshot" if self.is_snapshot else "trace"


@dataclass(frozen=True)
class Listing:
    """The result of a scan of a logdir.

    `recordings` are in natural order (`natural`) of the run, then of the source. `problems` has one sentence for each
    problem. `saved_jobs` are the saved reports of jobs; the `run` of each is the run of the traces of the job's
    ranks."""

    recordings: tuple[RecordingFile, ...]
    problems: tuple[str, ...]
    saved_jobs: tuple[RecordingFile, ...] = ()


@dataclass(frozen=True)
class Root:
    """A directory, file or URL to scan. The names of its runs get the prefix `name/` if `name` is not empty."""

    path: str
    name: str = ""

    def resolved(self) -> "Root":
        """Returns this root with an absolute path. A URL stays unchanged."""
        return self if is_url(self.path) else Root(LOCAL.absolute(self.path), self.name)


def parse_logdir_spec(spec: str) -> tuple[Root, ...]:
    """Returns the roots in `spec`, the value of `--logdir_spec`: `name:path` or `path`, separated by commas.

    A part that starts with a slash, a drive letter or a scheme (`s3://`) is a path even if it contains a colon.
    """
    roots = []
    for part in filter(None, spec.split(",")):
        named = ":" in part and not (part.startswith("/") or is_url(part) or os.path.splitdrive(part)[0])
        name, _, path = part.partition(":") if named else ("", "", part)
        roots.append(Root(path, name))
    return tuple(roots)


def scan(root: str | os.PathLike[str], name: str = "") -> Listing:
    """Returns the recordings below `root`, a directory or a file, local or at a URL. `name` is as in Root.

    Does not raise if files cannot be read: `problems` of the result has a sentence for each problem. Symbolic links are
    followed inside the directory only (see file_system.py), and each directory is visited once.
    """
    given = os.fspath(root)
    try:
        storage = filesystem_of(given)
        top = storage.absolute(given)
        status = storage.status(top)
    except Unreadable as error:
        return Listing((), (str(error),))
    except OSError as error:
        return Listing((), (f"{display_name(given)}: cannot be read ({error.strerror or error}).",))
    if status.kind != "directory":
        folder = top.rpartition("/")[0] if is_url(top) else os.path.dirname(top)
        alone = _recording(FoundFile(top, top), folder, name, status)
        return Listing(((_recognised(alone) or alone),) if alone else (), ())
    problems: list[str] = []
    files = (file for file in storage.walk(top, problems) if _may_be_recording(file.path))
    candidates = (_recording(file, top, name, file.status or _status_of(storage, file.real)) for file in files)
    recordings: list[RecordingFile] = []
    saved_jobs: list[RecordingFile] = []
    for candidate in filter(None, candidates):
        if candidate.path.endswith(JOB_ENDING):
            saved_jobs.append(candidate)
        elif found := _recognised(candidate):
            recordings.append(found)
    return Listing(tuple(sorted(recordings, key=_order)), tuple(problems), tuple(sorted(saved_jobs, key=_order)))


def scan_all(roots: Sequence[Root]) -> Listing:
    """Scans all `roots`, and returns the results as one listing with the recordings in natural order."""
    listings = [scan(root.path, root.name) for root in roots]
    recordings = sorted((recording for listing in listings for recording in listing.recordings), key=_order)
    saved_jobs = tuple(saved for listing in listings for saved in listing.saved_jobs)
    return Listing(
        tuple(recordings), tuple(problem for listing in listings for problem in listing.problems), saved_jobs
    )


def _order(recording: RecordingFile) -> tuple[Natural, str, Natural, str]:
    return natural(recording.run), recording.run, natural(recording.source), recording.path


@lru_cache(maxsize=1 << 14)  # a server sorts the same names again and again
def natural(text: str) -> Natural:
    """Returns a sort key for natural order, in which "run2" is before "run10"."""
    parts = _NUMBER.split(text)
    return tuple(zip(parts[::2], [*(int(number) for number in parts[1::2]), -1], strict=True))


def _may_be_recording(path: str) -> bool:
    if is_event_file(path):
        return not is_url(path)  # the telemetry reader follows a growing file, and object stores have none
    if path.endswith(SIDECAR_ENDING):
        return path.endswith(JOB_ENDING)
    return bool(_POSSIBLE_NAME.search(path)) or path.endswith(SNAPSHOT_ENDINGS)


def _status_of(storage: FileSystem, path: str) -> Status | None:
    try:
        return storage.status(path)
    except OSError:
        return None  # deleted by now


def _recording(file: FoundFile, top: str, name: str, status: Status | None) -> RecordingFile | None:
    """Returns `file`, found below `top`, as a recording. None if the file is gone or not regular (opening a pipe would
    block)."""
    if status is None or status.kind != "file":
        return None
    path = file.path
    if is_url(path):
        directory, _, source = path.rpartition("/")
        inner = directory.removeprefix(top).strip("/") or "."
    else:
        directory, source = os.path.split(path)
        inner = Path(os.path.relpath(directory, top)).as_posix()
    run = inner if not name else name if inner == "." else f"{name}/{inner}"
    shown = without_host(display_name(source))
    return RecordingFile(file.real, display_name(run), shown, status.size, status.mtime_ns, status.tag)


def _recognised(file: RecordingFile) -> RecordingFile | None:
    """Returns `file` with `is_snapshot` set from its first bytes, or None if the file is not a recording."""
    if _PROFILER_NAME.search(file.path):
        return file
    try:
        if file.is_telemetry:
            return file if holds_telemetry(file.path, file.size) else None
        form = _form_of(file.path, file.size, file.mtime_ns, file.tag)
    except OSError:
        return None
    return replace(file, is_snapshot=form == "snapshot") if form else None


@lru_cache(maxsize=65536)
def _form_of(path: str, size: int, mtime_ns: int, tag: str) -> str:
    """Returns "trace" or "snapshot" if the first bytes of the file look like one, otherwise "".

    `size`, `mtime_ns` and `tag` are used only as cache keys.

    Raises:
        OSError: the file cannot be read."""
    head = first_bytes(path, SNIFFED_BYTES)
    if looks_like_snapshot(head):
        return "snapshot"
    if path.endswith(SNAPSHOT_ENDINGS):
        return ""
    if b'"traceEvents"' in head or (b'"schemaVersion"' in head and b'"deviceProperties"' in head):
        return "trace"
    if is_perfetto(head):
        return "trace"
    return "trace" if _LIST_OF_OBJECTS.match(head) and _PHASE.search(head) else ""
