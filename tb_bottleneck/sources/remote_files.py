"""Files at URLs: the door to fsspec, which knows the schemes, and to the packages of the stores, which it asks for."""

import errno
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, BinaryIO, TypeVar

from tb_bottleneck.errors import Unreadable
from tb_bottleneck.sources.place import Status
from tb_bottleneck.units import NS_PER_S

Answer = TypeVar("Answer")

# What stores call the time of the last change: local and sftp, S3, WebDAV, GCS, memory, Azure.
_TIMES = ("mtime", "LastModified", "modified", "updated", "created", "last_modified")
# A file called `x::file:///etc/hosts.json` must not become the way to another place.
_CHAIN = "::"
_TAGS = ("ETag", "etag", "content_md5", "md5Hash")


class Remote:
    """The seam's remote side. Nothing of it is kept between two calls but fsspec's own connections."""

    def absolute(self, path: str) -> str:
        """A URL is absolute."""
        return path.rstrip("/") if not path.endswith("://") else path

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """Asks the store anew: a file may have been replaced since it was opened."""
        return _status(_asked(path, lambda system, inner: system.info(inner)))

    def open(self, path: str) -> BinaryIO:
        """Read in blocks, as they are asked for."""
        file: BinaryIO = _asked(path, lambda system, inner: system.open(inner, "rb"))
        return file

    def walk(self, top: str, problems: list[str]) -> Iterator[tuple[str, Status | None]]:
        """All files below, in one listing: stores charge by the request."""

        def listed(system: Any, inner: str) -> list[tuple[str, Status]]:
            found = system.find(inner, detail=True)
            # Behind what the user gave, which may hold more than the store's own names do (an account).
            return [(name[len(inner) :].lstrip("/"), _status(info)) for name, info in sorted(found.items())]

        try:
            for name, status in _asked(top, listed):
                if _CHAIN in name:
                    problems.append(
                        f"{top}: the name {name!r} is left out; fsspec would take {_CHAIN} for a second URL."
                    )
                else:
                    yield f"{top.rstrip('/')}/{name}" if not top.endswith("://") else top + name, status
        except OSError as error:
            problems.append(f"{top}: this place could not be listed ({error.strerror or error}).")


REMOTE = Remote()


def _asked(url: str, ask: Callable[[Any, str], Answer]) -> Answer:
    """What the store answers. Whatever its package raises becomes an OSError, what is missing an Unreadable."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise Unreadable(f"{url} is read with fsspec, which is missing: python -m pip install fsspec") from None
    scheme = url.partition("://")[0]
    try:
        system, inner = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        # fsspec says which package it is: "Install s3fs to access S3".
        raise Unreadable(f"{url} cannot be read yet: {error} (python -m pip install PACKAGE)") from None
    except ValueError:
        raise Unreadable(f"{url} cannot be read: fsspec knows no scheme {scheme}://") from None
    try:
        return ask(system, inner)
    except OSError:
        raise
    except Exception as error:  # a border: each store's package has errors of its own (no credentials, no network)
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}"[:300]) from error


def _status(info: dict[str, Any]) -> Status:
    kind = {"file": "file", "directory": "directory"}.get(str(info.get("type")), "other")
    time = next((info[key] for key in _TIMES if info.get(key)), None)
    tag = next((str(info[key]) for key in _TAGS if info.get(key)), "")
    return Status(kind, int(info.get("size") or 0), _ns(time), tag)


def _ns(time: object) -> int:
    """A time in nanoseconds since 1970, however the store tells it; 0 where that is not known."""
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.replace("Z", "+00:00"))
        except ValueError:
            return 0
    if isinstance(time, datetime):
        time = time.timestamp()
    return int(time * NS_PER_S) if isinstance(time, int | float) else 0
