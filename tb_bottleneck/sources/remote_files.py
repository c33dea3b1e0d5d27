"""Files at URLs, read with fsspec and the packages of the object stores."""

import errno
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, BinaryIO, TypeVar

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.sources.file_system import FoundFile, Status

Answer = TypeVar("Answer")

# Names of the modification time: local and sftp, S3, WebDAV, GCS, memory, Azure.
_TIMES = ("mtime", "LastModified", "modified", "updated", "created", "last_modified")
# fsspec treats this text as the start of a second URL. It must not open another file for the name
# `x::file:///etc/hosts.json`.
_CHAIN = "::"
_TAGS = ("ETag", "etag", "content_md5", "md5Hash")


class Remote:
    """Object stores and other URLs. Nothing is cached between calls except fsspec's own connections."""

    def absolute(self, path: str) -> str:
        """Returns the URL without a trailing slash."""
        return path.rstrip("/") if not path.endswith("://") else path

    def status(self, path: str, file: BinaryIO | None = None) -> Status:
        """Returns the current status of `path`. `file` is ignored: the store has the status of `path`, which may have
        been replaced since `file` was opened."""
        return _status(_call_store(path, lambda system, inner: system.info(inner)))

    def open(self, path: str) -> BinaryIO:
        """Opens the file for reading. Its content is downloaded in blocks on demand."""
        file: BinaryIO = _call_store(path, lambda system, inner: system.open(inner, "rb"))
        return file

    def walk(self, top: str, problems: list[str]) -> Iterator[FoundFile]:
        """Yields all files below `top`. Requests only one listing, because stores charge per request."""

        def listed(system: Any, inner: str) -> list[tuple[str, Status]]:
            files = system.find(inner, detail=True)
            # Made relative, because the user's URL may have parts that the store's names lack, such as an account.
            return [(name[len(inner) :].lstrip("/"), _status(info)) for name, info in sorted(files.items())]

        try:
            for name, status in _call_store(top, listed):
                if _CHAIN in name:
                    problems.append(
                        f"{top}: the file {name!r} is skipped, because fsspec would read {_CHAIN} as a second URL."
                    )
                else:
                    path = f"{top.rstrip('/')}/{name}" if not top.endswith("://") else top + name
                    yield FoundFile(path, path, status)
        except OSError as error:
            problems.append(f"{top}: could not be listed ({error.strerror or error}).")


REMOTE = Remote()


def _call_store(url: str, ask: Callable[[Any, str], Answer]) -> Answer:
    """Calls `ask(filesystem, path)` with the fsspec file system of `url` and the path in it. Returns the result.

    Raises Unreadable if a package is missing or the scheme is unknown, and OSError for all other errors."""
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
    except Exception as error:  # each store's package has its own errors (no credentials, no network)
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}"[:300]) from error


def _status(info: dict[str, Any]) -> Status:
    kind = {"file": "file", "directory": "directory"}.get(str(info.get("type")), "other")
    time = next((info[key] for key in _TIMES if info.get(key)), None)
    tag = next((str(info[key]) for key in _TAGS if info.get(key)), "")
    return Status(kind, int(info.get("size") or 0), _ns(time), tag)


def _ns(time: object) -> int:
    """Converts `time`, a modification time as an object store states it, to ns since 1970; 0 if it is unknown."""
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.replace("Z", "+00:00"))
        except ValueError:
            return 0
    if isinstance(time, datetime):
        time = time.timestamp()
    return int(time * NS_PER_S) if isinstance(time, int | float) else 0
