"""The notes of a logdir on disk: LOGDIR/.tb_bottleneck_review/TIME-ID.jsonl, one append-only file per writing process.

Two processes never write to the same file: on network file systems, appends from two machines overwrite each other, and
locks may not work. The name of the file contains a random id. Therefore, two people who state the same name, or one
person on two machines, also write to different files. Each line is written by one call of write(). A reader merges all
files.
"""

import os
import secrets
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tb_bottleneck.review.notes import MAX_TEXT, Action, Note, clean, line_of, parse
from tb_bottleneck.sources.file_system import REVIEW_DIRECTORY
from tb_bottleneck.sources.logdir import Root
from tb_bottleneck.sources.paths import is_url

ENDING = ".jsonl"
MAX_FILES = 20_000  # the newest ones are read
MAX_FILE_BYTES = 4 << 20  # more than 10,000 notes of one process
MAX_TOTAL_BYTES = 16 << 20
MAX_BROKEN = 100  # lines of one file that are not notes; the rest of the file is not read
MAX_SKEW_NS = 24 * 3600 * 10**9
"""Largest difference between the clocks of writers, in ns, that is corrected: up to it, a new note gets a later time
than all notes that its writer could read."""


@dataclass(frozen=True)
class Notes:
    """The merged notes of all writers in order of time. `problems` has sentences about what could not be read."""

    notes: tuple[Note, ...] = ()
    problems: tuple[str, ...] = ()


class NoteWriter:
    """Writes the notes of one process to a file of its own, which is created with the first note. `path` is that file.

    `logdir` is the directory that TensorBoard shows. `writer` is the name of the reviewer.
    """

    def __init__(self, logdir: str, writer: str) -> None:
        self._directory = Path(logdir) / REVIEW_DIRECTORY
        self._writer = clean(writer)
        self._last_ns = max((note.time_ns for note in read_notes(logdir).notes), default=0)
        self._handle: int | None = None
        self.path = self._directory / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(8)}{ENDING}"

    def write(self, action: Action, subject: str, *, cause: str = "", text: str = "", fixed_in: str = "") -> Note:
        """Appends a note to the file and returns it. The arguments are the fields of Note. The note is on the disk when
        the method returns.

        Raises:
            OSError: the note could not be written.
            ValueError: `text` is longer than MAX_TEXT.
        """
        if len(text) > MAX_TEXT:
            raise ValueError(f"the text has {len(text)} characters; the maximum is {MAX_TEXT}")
        now = time.time_ns()
        known = self._last_ns if self._last_ns < now + MAX_SKEW_NS else 0
        self._last_ns = max(now, known + 1)
        note = Note(
            secrets.token_hex(8), self._last_ns, self._writer, action, subject, clean(cause), clean(text), fixed_in
        )
        line = line_of(note)
        if self._handle is None:
            self._handle = self._created()
        if os.write(self._handle, line) != len(line):
            raise OSError(None, "the disk is full")
        os.fsync(self._handle)
        return note

    def close(self) -> None:
        """Closes the file, if it was created."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _created(self) -> int:
        """Creates the directory, if needed, and the new file, and returns the file's descriptor. Other users may read
        the file. Users who may write to the logdir may also write to the directory. Raises OSError."""
        try:
            self._directory.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(self._directory).st_mode):
                raise
        else:
            self._directory.chmod(stat.S_IMODE(self._directory.parent.stat().st_mode))
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)


def read_notes(logdir: str) -> Notes:
    """Returns the merged notes of the directory `logdir`. Never raises because of a file: files and lines that cannot
    be read are counted in `problems`. A logdir that is a URL has no notes."""
    directory = Path(logdir) / REVIEW_DIRECTORY
    try:
        if is_url(logdir) or not stat.S_ISDIR(os.lstat(directory).st_mode):
            return Notes()
        names = sorted((name for name in os.listdir(directory) if name.endswith(ENDING)), reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return Notes()
    except OSError as error:
        return Notes(problems=(f"{REVIEW_DIRECTORY}: the review could not be read ({error.strerror}).",))
    notes: dict[str, Note] = {}
    left, broken, left_out = MAX_TOTAL_BYTES, 0, max(len(names) - MAX_FILES, 0)
    for name in names[:MAX_FILES]:
        content = _content(directory / name, min(left, MAX_FILE_BYTES))
        if content is None:
            left_out += 1
            continue
        left -= len(content)
        found = _notes_in(content)
        broken += sum(note is None for note in found)
        notes |= {note.id: note for note in found if note is not None and note.id not in notes}
    return Notes(tuple(sorted(notes.values(), key=lambda note: note.order)), tuple(_problems(left_out, broken)))


def _notes_in(content: bytes) -> list[Note | None]:
    """Returns the notes in the bytes of a file, and None for each line that is not a note. The text after the last line
    break is an unfinished line and is left out. After more than MAX_BROKEN lines that are not notes, the rest of the
    file is not read."""
    found: list[Note | None] = []
    broken = 0
    for line in content.split(b"\n")[:-1]:
        try:
            found.append(parse(line))
        except ValueError:
            found.append(None)
            if (broken := broken + 1) > MAX_BROKEN:
                break
    return found


def _content(path: Path, most: int) -> bytes | None:
    """Returns the content of the file at `path`, or None if it is not a regular file, is larger than `most` bytes, or
    cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return None
            return file.read(status.st_size)
    except OSError:
        return None


def _problems(left_out: int, broken: int) -> list[str]:
    """Returns sentences about `left_out` files and `broken` lines; none for a number that is 0."""
    problems = []
    if left_out:
        problems.append(f"{REVIEW_DIRECTORY}: {left_out} files are left out: too large, too many, or unreadable.")
    if broken:
        problems.append(f"{REVIEW_DIRECTORY}: {broken} lines are not notes and are left out.")
    return problems


def read_all(roots: Sequence[Root]) -> Notes:
    """Returns the merged notes of all `roots`. If a root has a name, the names of its runs get the prefix ROOT/, as in
    a scan."""
    each = [(root, read_notes(root.path)) for root in roots]
    notes = [_named(note, root.name) for root, found in each for note in found.notes]
    return Notes(
        tuple(sorted(notes, key=lambda note: note.order)),
        tuple(problem for _, found in each for problem in found.problems),
    )


def _named(note: Note, root: str) -> Note:
    """Returns the note with the prefix `root`/ before the names of runs. The name "." becomes `root`.
    Returns the note unchanged if `root` is empty."""
    if not root:
        return note
    subject, fixed_in = (root if name == "." else name and f"{root}/{name}" for name in (note.subject, note.fixed_in))
    return replace(note, subject=subject, fixed_in=fixed_in)
