"""Access to recordings on local disks and at URLs (s3://, gs://, memory://, ...) through one interface.

Traces and snapshots are opened, listed and inspected only through this interface. Event files of the monitor and dumps
of the Flight Recorder, which are supported only on local disks, are read without it.
"""

import re
import zlib

from tb_bottleneck.base.errors import NotFound, Unreadable
from tb_bottleneck.sources.compressed_frames import frames_of
from tb_bottleneck.sources.file_system import FileSystem, Status, display_name

_URL = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")


def is_url(path: str) -> bool:
    """Returns True if the path has a URL scheme."""
    return _URL.match(path) is not None


def filesystem_of(path: str) -> FileSystem:
    """Returns the storage for `path`: REMOTE for a URL, otherwise LOCAL."""
    if is_url(path):
        from tb_bottleneck.sources.remote_files import REMOTE  # rarely needed, and slow to import

        return REMOTE
    from tb_bottleneck.sources.file_system import LOCAL

    return LOCAL


def status_of(path: str) -> Status:
    """Returns the status of `path`. Raises NotFound, with the reason, if `path` does not exist or cannot be read."""
    try:
        return filesystem_of(path).status(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"no such file or directory: {display_name(path)}") from error
    except OSError as error:
        raise NotFound(f"{display_name(path)}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise NotFound(f"invalid file name: {path!r}") from error
    except Unreadable as error:
        raise NotFound(str(error)) from error


def first_bytes(path: str, count: int) -> bytes:
    """Returns the first bytes of the inflated content of the file at `path`, at most `count`; b"" if the file cannot be
    inflated.

    Only the first `count` bytes of the file are read, so the result may be shorter than `count` and the content.

    Raises:
        OSError: the file cannot be read.
    """
    with filesystem_of(path).open(path) as file:
        raw = file.read(count)
    try:
        if raw.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(wbits=31).decompress(raw, count)
        frames = frames_of(raw)
        return raw if frames is None else frames.first(raw, count)
    except (zlib.error, Unreadable):
        return b""
