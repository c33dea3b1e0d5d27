"""Serves the files of the built tab by name, from one flat directory."""

import re
from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "static"
ENTRY = "index.js"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # no separator and no leading dot: a name cannot leave the directory
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}

_NOT_BUILT = """\
export function render() {
  document.body.textContent =
    "The Bottlenecks tab was not built into this installation of tb_bottleneck. " +
    "Run `pip install .` in the checkout; it builds the tab with npm, or with a downloaded Node.js if npm is missing.";
}
"""


def read(name: str, directory: Path = DIRECTORY) -> tuple[bytes, str] | None:
    """Returns the file's content and media type, or None if there is no such file.

    If the tab was not built, the entry module is a stub that tells the user how to build it.
    """
    media_type = _TYPES.get(Path(name).suffix)
    if not _NAME.fullmatch(name) or media_type is None:
        return None
    try:
        return (directory / name).read_bytes(), media_type
    except OSError:
        return (_NOT_BUILT.encode(), media_type) if name == ENTRY else None
