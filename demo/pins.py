"""The files that `python -m demo public` downloads: what public.toml says of each, and the check of its content."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote

import tomli

PINS = Path(__file__).with_name("public.toml")
LICENCES = frozenset(("Apache-2.0", "BSD-3-Clause", "MIT"))
LARGEST = 1 << 28
"""Bytes of JSON that a pin may have. The largest recording has 55 MB."""

# The plugin lists files with this ending without reading them (tb_bottleneck/sources/logdir.py).
_FILE = "recording.pt.trace.json"
_BLOCK = 1 << 16
_GZIP = b"\x1f\x8b"

_NAME = re.compile(r"[a-z0-9_]{1,60}(?:/(?:before|after))?")
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PATH = re.compile(r"(?:(?!\.{1,2}/)[\w .-]+/)*[\w .-]+\.json(?:\.gz)?", re.ASCII)


class InvalidPin(Exception):
    """An entry of public.toml cannot be used; str() names the entry and the field."""


@dataclass(frozen=True)
class Pin:
    """One public recording: one entry of public.toml, with the fields that are described there.

    `size` (bytes) and `sha256` are those of the JSON before compression, because that does not depend on who compressed
    it. Raises InvalidPin.
    """

    name: str
    gpu: str
    shows: str
    licence: str
    repository: str
    commit: str
    path: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        texts = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "size"}
        wrong = [key for key, text in texts.items() if not _is_text(text, _PATTERNS.get(key))]
        if "licence" not in wrong and self.licence not in LICENCES:
            wrong.append("licence")
        if not isinstance(self.size, int) or not 0 < self.size <= LARGEST:
            wrong.append("size")
        if wrong:
            raise InvalidPin(f"{self.name!a}: {', '.join(f'{key} = {getattr(self, key)!a}' for key in wrong)}")

    def url(self, base: str) -> str:
        """Returns the address below `base`, a server with the layout of raw.githubusercontent.com."""
        return f"{base}/{self.repository}/{self.commit}/{quote(self.path)}"

    def file(self, folder: Path) -> Path:
        """Returns where the recording is stored. The name of the folder is the name of the run."""
        return folder / self.name / (_FILE + ".gz" * self.path.endswith(".gz"))


def _is_text(value: object, pattern: re.Pattern[str] | None) -> bool:
    return isinstance(value, str) and value.isprintable() and (pattern is None or bool(pattern.fullmatch(value)))


_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "name": _NAME,
    "repository": _REPOSITORY,
    "commit": _COMMIT,
    "path": _PATH,
    "sha256": _SHA256,
}


def read_pins(path: Path = PINS) -> tuple[Pin, ...]:
    """Returns the entries of public.toml in their order. Raises InvalidPin."""
    entries: list[dict[str, Any]] = tomli.loads(path.read_text(encoding="utf-8"))["recording"]
    known = {field.name for field in fields(Pin)}
    for entry in entries:
        if entry.keys() != known:
            raise InvalidPin(f"{entry.get('name')!a}: missing or unknown: {', '.join(sorted(entry.keys() ^ known))}")
    pins = tuple(Pin(**entry) for entry in entries)
    names = [pin.name for pin in pins]
    for name in names:
        if names.count(name) > 1:
            raise InvalidPin(f"{name!a}: this name is used twice")
    return pins


def difference(path: Path, pin: Pin) -> str | None:
    """Returns how the file differs from what was pinned, or None if it is the same.

    Decompresses a file that begins as gzip does, under any name, in blocks and up to the pinned size.
    Raises OSError if the file cannot be read.
    """
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        content: IO[bytes] = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file
        try:
            while block := content.read(min(_BLOCK, pin.size + 1 - size)):
                size += len(block)
                digest.update(block)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            return "it is a damaged gzip file"
    if size != pin.size:
        return f"it has {'more than ' if size > pin.size else f'{size:,} bytes instead of '}{pin.size:,} bytes of JSON"
    return None if digest.hexdigest() == pin.sha256 else "its JSON has another SHA-256"
