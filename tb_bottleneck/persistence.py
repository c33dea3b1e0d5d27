"""The cache directory of the user, and files that are written completely or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import platformdirs

CACHE_VARIABLE = "TB_BOTTLENECK_CACHE"
"""Environment variable with an absolute path of the cache directory, or "off"."""


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the cache directory, or None if the cache is switched off or has no absolute path."""
    value = environment.get(CACHE_VARIABLE, "")
    if value.lower() == "off":
        return None
    try:
        path = Path(value) if value else platformdirs.user_cache_path("tb_bottleneck", appauthor=False)
    except RuntimeError:
        return None  # a user without a home directory
    return path if path.is_absolute() else None


@contextlib.contextmanager
def atomic_file(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Opens a new file for writing; it replaces `path` when the block ends without an error.

    The content is first written next to `path`, to a file whose name ends in `.tmp`. After an error nothing remains of
    it. `mode` are the permissions, less those that the umask of the process withholds.

    Raises:
        OSError: the file could not be written.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(handle, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes a file completely or not at all. Raises OSError."""
    with atomic_file(path, mode) as file:
        file.write(data)
