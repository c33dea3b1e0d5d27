"""The git revision of the training script, read from the files of its repository. Nothing is executed.

It is the commit that is checked out. Changes that were not committed are not visible without running git.
"""

import re
import sys
from functools import cache
from pathlib import Path

MAX_FOLDERS = 64  # that a script is deep in its repository
MAX_BYTES = 4 << 20  # of the list of packed refs: about 50,000 branches and tags
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # SHA-1, or SHA-256
_REF = re.compile(r"refs/[^\s\0]+")


@cache
def script_revision() -> str | None:
    """Returns the commit of the repository that the training script is in; None if there is none.

    It is read once: what is checked out later is not what runs.

    Raises:
        OSError: a file of the repository cannot be read.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return revision_of(Path(script).resolve().parent) if isinstance(script, str) else None


def revision_of(folder: Path) -> str | None:
    """Returns the commit that is checked out in the repository of this folder; None if there is none."""
    for candidate in [folder, *folder.parents][:MAX_FOLDERS]:
        git = candidate / ".git"
        if git.is_dir():
            return _head(git)
        if git.is_file():  # a work tree or a submodule: its data is elsewhere
            target = _text(git).removeprefix("gitdir:").strip()
            return _head(candidate / target)
    return None


def _head(git: Path) -> str | None:
    head = _text(git / "HEAD").strip()
    if _HASH.fullmatch(head):
        return head
    name = head.removeprefix("ref:").strip()
    if not _REF.fullmatch(name) or ".." in name:
        return None
    common = git / _text(git / "commondir").strip() if (git / "commondir").is_file() else git
    for folder in (git, common):
        if (folder / name).is_file():
            found = _text(folder / name).strip()
            return found if _HASH.fullmatch(found) else None
    packed = _text(common / "packed-refs") if (common / "packed-refs").is_file() else ""
    lines = (line.split(" ") for line in packed.splitlines())
    return next((line[0] for line in lines if line[1:] == [name] and _HASH.fullmatch(line[0])), None)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "replace")
