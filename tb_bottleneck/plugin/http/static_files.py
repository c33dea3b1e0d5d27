"""The built tab's files, by name: one flat directory, nothing above it and nothing below."""

import re
from pathlib import Path

DIRECTORY = Path(__file__).parents[1] / "static"
ENTRY = "index.js"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # no separator and no leading dot, so no way out
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
    "Run `pip install .` in the checkout; it builds the tab with npm, or fetches Node.js for it where there is none.";
}
"""


def read(name: str, directory: Path = DIRECTORY) -> tuple[bytes, str] | None:
    """The file's content and media type; None where there is no such file.

    Where the tab was not built, its entry module is one that says so.
    """
    media_type = _TYPES.get(Path(name).suffix)
    if not _NAME.fullmatch(name) or media_type is None:
        return None
    try:
        return (directory / name).read_bytes(), media_type
    except OSError:
        return (_NOT_BUILT.encode(), media_type) if name == ENTRY else None
