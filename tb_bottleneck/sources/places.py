"""Where recordings may lie, behind one seam: on a local disk, or at a URL (s3://, gs://, memory://, ...).

Nothing else in the package looks at, opens or lists what a user named as the place of his recordings.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from tb_bottleneck.errors import NotFound, Unreadable

_URL = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")


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


def is_url(path: str) -> bool:
    """Whether the path names its own scheme."""
    return _URL.match(path) is not None


def place_of(path: str) -> Place:
    """What gets at this path."""
    if is_url(path):
        from tb_bottleneck.sources.remote import REMOTE  # few need it, and it takes a while to import

        return REMOTE
    from tb_bottleneck.sources.local import LOCAL

    return LOCAL


def status_of(path: str) -> Status:
    """What is at a path. Raises NotFound where nothing is, or nothing can be learnt of it, with what to do about it."""
    try:
        return place_of(path).status(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"no such file or directory: {shown(path)}") from error
    except OSError as error:
        raise NotFound(f"{shown(path)}: nothing could be read here ({error.strerror or error})") from error
    except ValueError as error:
        raise NotFound(f"no file can have this name: {path!r}") from error
    except Unreadable as error:
        raise NotFound(str(error)) from error


def shown(name: str) -> str:
    """A file's name as valid Unicode: names on disk are bytes, and messages refuse what is not text."""
    return os.fsencode(name).decode("utf-8", "replace")
