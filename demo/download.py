"""Downloads one file over HTTP: continues a partial file, repeats after errors, and stops at a size."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

TIMEOUT = 30.0  # seconds without an answer
ATTEMPTS = 3
PAUSE = 1.0  # seconds between two attempts

_BLOCK = 1 << 16
_OK = 200
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500

Report = Callable[[int, int | None], None]
"""Takes the number of bytes so far, and of all bytes if the server says how many there are."""


class NotDownloaded(Exception):
    """The file was not downloaded; str() says why."""


class Unreachable(NotDownloaded):
    """There is no connection to the server, so other files of it need not be tried."""


class CannotStore(Exception):
    """The file cannot be written; str() names it and says why."""


def download(url: str, partial: Path, limit: int, report: Report) -> None:
    """Downloads `url` into `partial`, or what is missing there. Never reads more than `limit` bytes.

    After an error `partial` keeps what was received, for the next call.

    Raises:
        NotDownloaded: the server refuses the file, has a larger one, or failed in all attempts.
        Unreachable: there is no connection to the server.
        CannotStore: `partial` cannot be written.
    """
    failure = NotDownloaded("not tried")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        try:
            return _receive(url, partial, limit, report)
        except HTTPError as error:
            error.close()
            failure = NotDownloaded(f"the server answered with status {error.code}")
            if error.code == _RANGE_NOT_SATISFIABLE:
                _remove(partial)  # it is not the beginning of this file
            elif error.code < _SERVER_ERROR and error.code != _TOO_MANY_REQUESTS:
                raise failure from None
        except URLError as error:
            failure = Unreachable(_reason(error.reason))
        except (OSError, HTTPException) as error:
            failure = NotDownloaded(f"the connection ended early ({_reason(error)})")
    raise failure


def _receive(url: str, partial: Path, limit: int, report: Report) -> None:
    with _storing(partial):
        size = partial.stat().st_size if partial.exists() else 0
    have = size if size < limit else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    response: HTTPResponse
    with urlopen(request, timeout=TIMEOUT) as response:
        if have and response.status == _OK:
            have = 0  # the server ignores ranges and sends the whole file
        elif have and not _continues(response, have):
            _remove(partial)
            raise HTTPException
        total = None if response.length is None else have + response.length
        if total is not None and total > limit:
            raise NotDownloaded(f"the server has {total:,} bytes, and at most {limit:,} were expected")
        with _storing(partial):
            file = partial.open("ab" if have else "wb")
        with file:
            while block := response.read(min(_BLOCK, limit - have)):
                with _storing(partial):
                    file.write(block)
                    file.flush()  # so that closing the file cannot fail
                have += len(block)
                report(have, total)
        if total is not None and have < total:
            raise ConnectionError  # read() reports an early end like the end of the file


def _continues(response: HTTPResponse, have: int) -> bool:
    return response.status == _PARTIAL_CONTENT and response.headers.get("Content-Range", "").startswith(
        f"bytes {have}-"
    )


def _reason(error: object) -> str:
    """Returns the words of the operating system, or the class: other texts may be the server's."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return error if isinstance(error, str) else type(error).__name__


def _remove(partial: Path) -> None:
    with _storing(partial):
        partial.unlink(missing_ok=True)


@contextmanager
def _storing(path: Path) -> Iterator[None]:
    """Raises errors of the disk as CannotStore, so that they are not taken for errors of the network."""
    try:
        yield
    except OSError as error:
        raise CannotStore(f"{path}: {error.strerror or error}") from error
