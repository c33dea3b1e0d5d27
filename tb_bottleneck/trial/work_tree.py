"""Makes copies of the user's git work tree for `--patch` and `--rev`. The work tree itself is never changed."""

import os
import subprocess
import tarfile
from pathlib import Path

from tb_bottleneck.base.errors import Unusable


def with_revision(revision: str, into: Path) -> str:
    """Writes the files of the git revision `revision` to the new folder `into`.

    Returns the folder in `into` that corresponds to the working directory.

    Raises:
        Unusable: there is no repository or no such revision."""
    top = Path(_git("rev-parse", "--show-toplevel"))
    into.mkdir(parents=True)
    archive = into.with_suffix(".tar")
    _git("archive", "--format=tar", f"--output={archive}", revision, folder=top)
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(into)
    archive.unlink()
    return str(into / Path.cwd().resolve().relative_to(top.resolve()))


def revision_id(revision: str) -> str:
    """Returns the id of the commit that `revision` names. Raises Unusable as `with_revision` does."""
    return _git("rev-parse", "--verify", f"{revision}^{{commit}}")


def with_patch(patch: Path, into: Path) -> str:
    """Copies the files of the work tree, with uncommitted changes, to the folder `into`, and applies `patch` to the
    copy.

    Returns the folder in the copy that corresponds to the working directory.

    Raises:
        Unusable: there is no repository, or the patch does not apply."""
    top = Path(_git("rev-parse", "--show-toplevel"))
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=top).split("\0")
    for name in filter(None, names):
        source, target = top / name, into / name
        if source.is_file() and not source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    text = patch.read_bytes()
    done = subprocess.run(["git", "apply", "-p1", "-"], cwd=into, input=text, capture_output=True, env=_outside(into))
    if done.returncode != 0:
        raise Unusable(f"{patch} does not apply: {done.stderr.decode('utf-8', 'replace').strip()[:300]}")
    return str(into / Path.cwd().resolve().relative_to(top.resolve()))


def _outside(folder: Path) -> dict[str, str]:
    """Returns environment variables with which git does not treat `folder` as part of a repository, even if it is
    inside one."""
    return {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_DIR": str(folder / ".none")}


def _git(*arguments: str, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True)
    except FileNotFoundError:
        raise Unusable("git is not installed, and --patch and --rev need it") from None
    if done.returncode != 0:
        because = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Unusable(f"git {arguments[0]}: {because[-1] if because else 'failed'}")
    return done.stdout.decode("utf-8", "replace").rstrip("\n")
