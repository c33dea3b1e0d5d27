"""Copies the skill for coding agents, without overwriting what a user has changed."""

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.base.persistence import atomic_file

NAME = "tb-bottleneck"
MANIFEST = ".installed.json"
"""The file beside the pages with the SHA-256 of each page as it was installed."""


def pages() -> dict[str, bytes]:
    """Returns a dict from the file name of each page to its content. SKILL.md is the page to read first."""
    folder = files("tb_bottleneck") / "docs" / "skill"
    return {page.name: page.read_bytes() for page in folder.iterdir() if page.name.endswith(".md")}


def install(folder: Path, force: bool = False) -> list[Path]:
    """Writes the pages of the skill to the folder NAME in `folder`, and returns the paths of the pages that it wrote.

    Pages of another version that the user did not change are replaced.

    Raises:
        Unusable: a page was changed since it was installed, and `force` is not set. Nothing is written then.
        OSError: a file cannot be read or written.
    """
    target, new = folder / NAME, pages()
    installed = _manifest(target / MANIFEST)
    due = {name: content for name, content in new.items() if _content(target / name) != content}
    changed = [
        name for name in due if (found := _content(target / name)) is not None and _digest(found) != installed.get(name)
    ]
    if changed and not force:
        raise Unusable(f"{target / sorted(changed)[0]} was changed since it was installed; --force overwrites it")
    target.mkdir(parents=True, exist_ok=True)
    for name, content in due.items():
        _write(target / name, content)
    digests = {name: _digest(content) for name, content in sorted(new.items())}
    _write(target / MANIFEST, f"{json.dumps(digests, indent=1)}\n".encode())
    return [target / name for name in sorted(due)]


def _manifest(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes) -> None:
    with atomic_file(path, mode=0o666) as target:
        target.write(content)
