"""Says which file a report is about and which code made it: a report is used again only where both are the same."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tb_bottleneck.errors import Unreadable
from tb_bottleneck.sources.filesystem import place_of
from tb_bottleneck.version import __version__

PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Identity:
    """A file as it was at one moment; `path` is real and absolute."""

    path: str
    size: int  # bytes
    mtime_ns: int
    tag: str = ""  # what a remote store calls this version of the file


def identity_of(path: str) -> Identity | None:
    """The file as it is now; None where it is no regular file, or nothing can be learnt of it."""
    try:
        place = place_of(path)
        real = place.absolute(path)
        status = place.status(real)
    except (OSError, ValueError, Unreadable):
        return None
    return Identity(real, status.size, status.mtime_ns, status.tag) if status.kind == "file" else None


@cache
def code_version() -> str:
    """The package's version and a hash of its code and its facts, so that a change of either makes reports anew."""
    digest = hashlib.sha256()
    for path in sorted(path for ending in ("*.py", "*.toml") for path in PACKAGE.rglob(ending)):
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode(errors="surrogateescape"))
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{__version__}-{digest.hexdigest()[:16]}"
