"""The user's cache directory, safe reading of files that other users may have replaced, and writing of files that are
complete or absent."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

CACHE_VARIABLE = "TB_BOTTLENECK_CACHE"
"""Environment variable with the absolute path of the cache directory, or "off" to use no cache."""


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the cache directory. `environment` contains the environment variables; CACHE_VARIABLE names another
    directory.

    Returns None if the cache is switched off, if its path is not absolute, or if the user has no home directory.
    """
    value = environment.get(CACHE_VARIABLE, "")
    if value.lower() == "off":
        return None
    try:
        import platformdirs  # not when this module is imported: reading a file needs no cache

        path = Path(value) if value else platformdirs.user_cache_path("tb_bottleneck", appauthor=False)
    except RuntimeError:
        return None  # a user without a home directory
    return path if path.is_absolute() else None


_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OPEN_FILES = "/proc/self/fd"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0) | _NO_LINK


def open_regular(path: str | os.PathLike[str], follow_links: bool = True) -> BinaryIO:
    """Opens a regular file for reading in binary mode. Does not wait if another user has replaced the file by a pipe.

    If `follow_links` is False, `path` must be absolute, and no part of it may be a symbolic link. Systems without
    open(dir_fd=...), such as Windows, do not check for links.

    Raises:
        OSError: the file cannot be opened, or it is not a regular file.
    """
    handle = os.open(path, _READ) if follow_links or os.open not in os.supports_dir_fd else _open_real(os.fspath(path))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _open_real(path: str) -> int:
    """Opens the file at an absolute path and returns its descriptor. Raises OSError if it cannot be opened, or if a
    part of the path is a symbolic link. Each folder is opened relative to the one before, so that no part can be
    replaced between the check and the use."""
    first, *folders, name = Path(path).parts
    folder = os.open(first, _DIRECTORY)
    for part in folders:
        try:
            inner = os.open(part, _DIRECTORY, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    try:
        return os.open(name, _READ | _NO_LINK, dir_fd=folder)
    finally:
        os.close(folder)


def is_own(status: os.stat_result) -> bool:
    """Returns True if `status` (of os.stat) is that of a regular file that belongs to this user. On systems without
    users, returns True for every regular file."""
    return stat.S_ISREG(status.st_mode) and (not hasattr(os, "geteuid") or status.st_uid == os.geteuid())


def read_own(path: Path, most: int) -> bytes:
    """Returns the first `most` bytes of a file that belongs to this user and that no other user can change.

    Raises:
        OSError: the file cannot be read, it is not a regular file of this user, or another user can change it.
    """
    with open(os.open(path, _READ | _NO_LINK), "rb") as file:
        status = os.fstat(file.fileno())
        if not is_own(status) or (hasattr(os, "geteuid") and status.st_mode & 0o022):
            raise OSError(errno.EPERM, "another user may have written this file", os.fspath(path))
        return file.read(most)


@contextlib.contextmanager
def atomic_file(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Opens a new file for writing. The new file replaces `path` when the block ends without an error.

    The content is first written to a file without a name, so that nothing remains if the process is killed. If the
    system has no such files, the content is first written next to `path`, to a file whose name ends in `.tmp`. After an
    error, the new file is deleted. The permissions are `mode` without the bits of the umask of the process.

    Raises:
        OSError: the file could not be written.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    handle = _unnamed_file(path.parent, mode)
    named = handle is None
    if handle is None:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(handle, "wb") as file:
            yield file
            if not named:
                file.flush()
                _give_name(handle, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _unnamed_file(directory: Path, mode: int) -> int | None:
    """Opens a new file without a name in `directory` and returns its descriptor. Returns None if the system or the file
    system has no such files, or if writing fails. `mode` are the permissions."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_OPEN_FILES):
        return None
    try:
        return os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode)
    except OSError:
        return None  # the file system has no such files, or writing fails: opening a named file then raises the error


def _give_name(handle: int, path: Path) -> None:
    """Gives the open file `handle`, which has no name, the name `path`, in the way that open(2) describes for
    O_TMPFILE. os.link follows the link in _OPEN_FILES only if `src_dir_fd` is given. Raises OSError if the file cannot
    get the name."""
    directory = os.open(_OPEN_FILES, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.link(str(handle), path, src_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(directory)


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes `data` to `path` completely or not at all, as `atomic_file` does. `mode` are the permissions of the file.
    Raises OSError if the file cannot be written."""
    with atomic_file(path, mode) as file:
        file.write(data)
