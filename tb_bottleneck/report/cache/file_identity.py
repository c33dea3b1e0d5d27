"""Identifies the file and the code that a report comes from. A report is reused only if both are unchanged."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.sources.paths import filesystem_of
from tb_bottleneck.sources.torch_trace.beside import names_beside
from tb_bottleneck.version import __version__

PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class FileIdentity:
    """The state of a file at one moment. `path` is real and absolute.

    `tag` is the version of the file in a remote store, empty for local files. `beside` identifies the logs of
    torch.compile in the folder of the file.
    """

    path: str
    size: int  # bytes
    mtime_ns: int
    tag: str = ""  # version of the file in a remote store
    beside: str = ""  # logs of torch.compile in its folder (names_beside)


def identity_of(path: str) -> FileIdentity | None:
    """Returns the current identity of the file `path`; None if it is not a regular file or cannot be accessed."""
    try:
        storage = filesystem_of(path)
        real = storage.absolute(path)
        status = storage.status(real)
    except (OSError, ValueError, Unreadable):
        return None
    if status.kind != "file":
        return None
    return FileIdentity(real, status.size, status.mtime_ns, status.tag, names_beside(path))


@cache
def code_version() -> str:
    """Returns the version of the package and a hash of its code and its TOML files. If either changes, stored reports
    are not used any more."""
    digest = hashlib.sha256()
    for path in sorted(path for ending in ("*.py", "*.toml") for path in PACKAGE.rglob(ending)):
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode(errors="surrogateescape"))
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{__version__}-{digest.hexdigest()[:16]}"
