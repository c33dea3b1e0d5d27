"""Resolves the names that a reviewer gives on the command line: of a run or recording, and of a cause. Errors list the
names that exist."""

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.bottlenecks.texts import cause_titles
from tb_bottleneck.review.notes import names_of
from tb_bottleneck.sources.logdir import RecordingFile, Root, parse_logdir_spec
from tb_bottleneck.sources.paths import is_url

_MAX_NAMES = 4  # that a message lists


def roots_of(logdir: str) -> tuple[Root, ...]:
    """Returns the directories that `logdir` names: one directory, or those of a TensorBoard `--logdir_spec` (NAME:PATH,
    separated by commas).

    Raises:
        NotFound: one of them is not a local directory.
    """
    roots = (Root(logdir),) if os.path.isdir(logdir) else parse_logdir_spec(logdir)
    for root in roots:
        if is_url(root.path):
            raise NotFound(f"{root.path} is a URL; a review is stored in a logdir on a local or network file system")
        if not os.path.isdir(root.path):
            raise NotFound(f"no such directory: {root.path}; LOGDIR is the --logdir of TensorBoard, and comes first")
    return tuple(root.resolved() for root in roots)


def subject_of(name: str, logdir: str, recordings: Sequence[RecordingFile]) -> str:
    """Returns the full name, as in notes, of the run or recording that the reviewer called `name`. `recordings` are
    those under `logdir`.

    Besides full names, two forms are accepted: a path below the logdir, and a part of the name of exactly one run, as
    lists show it. For example, `vit/rank0_17` is `vit/tb_bottleneck/20260101-120000_rank0_17`, and `…lr2` is
    `sweep/resnet50_lr2`.

    Raises:
        NotFound: there is no such run or recording, or `name` is a part of the names of several runs.
    """
    names = dict.fromkeys(each for recording in recordings for each in names_of(recording))
    found = next((each for each in (name.rstrip("/"), _relative(name, logdir)) if each in names), None)
    if found is None:
        shown = sorted({recording.run for recording in recordings if _is_shown_as(name.strip("/"), recording.run)})
        if len(shown) > 1 and not all(run.startswith(f"{shown[0]}/") for run in shown[1:]):  # its monitor's folders
            raise NotFound(f"{name!r} stands for {len(shown)} runs under {logdir}: {_listed(shown)}")
        found = shown[0] if shown else None
    if found is None:
        raise NotFound(f"no run or recording is named {name!r} under {logdir}; {_hint(name, names)}")
    return found


def _is_shown_as(name: str, run: str) -> bool:
    """Returns True if `name` is a short form of `run`, as in the list: each part of `name` between "/" is a folder of
    `run`, in the same order.

    A part may also be the end of a folder's name, without the date and time before "_", or with "…" before it.
    """
    folders = iter(run.split("/"))
    ends = [part[1:] if part.startswith("…") else f"_{part}" for part in name.split("/")]
    parts = zip(name.split("/"), ends, strict=True)
    return all(any(folder == part or folder.endswith(end) for folder in folders) for part, end in parts)


def root_of(name: str, roots: Sequence[Root]) -> Root:
    """Returns the first of `roots` that contains the run `name`. Raises StopIteration if none does."""
    return next(root for root in roots if is_in_folder(name, root.name or "."))


def name_in(root: Root, name: str, logdir: str) -> str:
    """Returns the name of a run or folder relative to `root`, without the name of `root`; "." for `root` itself.
    `logdir` is the text that the reviewer gave, for the message.

    Raises:
        NotFound: the run or folder is in another directory of the `--logdir_spec`.
    """
    if not is_in_folder(name, root.name or "."):
        raise NotFound(f"{name} is not in {root.name}: a note can name only runs of one directory of {logdir}")
    return name[len(root.name) :].lstrip("/") or "."


def is_in_folder(name: str, folder: str) -> bool:
    """Returns True if the run or folder `name` is `folder` or lies in `folder`. The folder "." contains every run."""
    return folder == "." or f"{name}/".startswith(f"{folder}/")


def cause_of(name: str) -> str:
    """Returns the name of a cause unchanged after a check. An empty name is accepted. Raises NotFound if there is no
    cause of that name."""
    if name and name not in cause_titles():
        raise NotFound(f"no cause is named {name!r}; {_hint(name, cause_titles())}")
    return name


def _relative(path: str, logdir: str) -> str:
    """Returns `path` relative to `logdir`, with "/" between the folders. Links are resolved."""
    return os.path.relpath(os.path.realpath(path), os.path.realpath(logdir)).replace(os.sep, "/")


def _hint(name: str, names: Iterable[str]) -> str:
    """Returns the end of a message about the unknown `name`: the names in `names` that are similar to it; if there are
    none, the names that contain it; otherwise, the first names."""
    known = list(names)
    containing = [each for each in known if name.strip("/…").lower() in each.lower()]
    found = get_close_matches(name, known, _MAX_NAMES) or sorted(containing) or sorted(known)
    return f"there is {_listed(found)}" if found else "there is none"


def _listed(names: Sequence[str]) -> str:
    """Returns the first _MAX_NAMES of `names`, separated by commas."""
    return ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")
