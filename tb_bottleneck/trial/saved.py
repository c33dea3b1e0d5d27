"""Saves the blocks (runs) of a trial on disk, so that a trial that was interrupted, killed, or out of time can
continue.

What a trial does next depends only on the results of its blocks so far. To continue, the trial starts again from the
beginning, and the results of the first blocks are read from the disk. These files are in the user's cache, not in the
logdir, which has only finished trials.
"""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tb_bottleneck.base.persistence import cache_directory
from tb_bottleneck.trial.block_result import BlockFailed, BlockResult
from tb_bottleneck.trial.changes import Change
from tb_bottleneck.trial.trial import Runner

FOLDER = "trials"
FILE = "blocks.jsonl"
KEPT_S = 7 * 24 * 3600.0
"""Saved blocks that are older than this are deleted, because the program and the machine have probably changed."""


def folder_of(command: Sequence[str], script: Path | None) -> Path | None:
    """Returns the folder for the saved blocks of a trial; None if there is no cache folder. Deletes old folders of
    trials.

    `command` has the words of the command line of the trial. `script` is the script that it runs, or None. The folder
    is the same if the command, the content of the script, the working directory and the machine are the same.
    """
    cache = cache_directory()
    if cache is None:
        return None
    content = script.read_bytes() if script is not None else b""
    facts = [*command, str(Path.cwd()), platform.node(), hashlib.sha256(content).hexdigest()]
    for other in (cache / FOLDER).glob("*"):
        with contextlib.suppress(OSError):  # another trial may have deleted it
            if time.time() - other.stat().st_mtime > KEPT_S:
                shutil.rmtree(other, ignore_errors=True)
    return cache / FOLDER / hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def describe(folder: Path) -> str:
    """Returns a text with the number of rounds saved in `folder` and the time of the last one; empty if there are
    none."""
    try:
        lines = (folder / FILE).read_bytes().count(b"\n")
        written = time.strftime("%Y-%m-%d %H:%M", time.localtime((folder / FILE).stat().st_mtime))
    except OSError:
        return ""
    return f"{lines} {'round' if lines == 1 else 'rounds'}, {written}" if lines else ""


@dataclass
class SavedBlocks:
    """Runs rounds of blocks with `runner`, and saves each round in `folder`. Rounds that were saved before are not run
    again."""

    runner: Runner
    folder: Path
    saved: list[list[dict[str, Any]]] = field(default_factory=list)
    """For each round that an earlier process saved and that was not used yet: its blocks."""
    used: list[list[dict[str, Any]]] = field(default_factory=list)
    """The blocks of each round that `run` returned."""

    def load(self) -> int:
        """Reads the rounds that an earlier process saved, and returns their number."""
        with contextlib.suppress(OSError, ValueError):  # a killed process may have written half of the last line
            for line in (self.folder / FILE).read_text(encoding="utf-8").splitlines():
                self.saved.append(json.loads(line))
        return len(self.saved)

    @property
    def has_blocks(self) -> bool:
        """True if the trial can be continued later: if the folder is in the cache and has at least one saved round."""
        return self.folder.parent.name == FOLDER and bool(describe(self.folder))

    def run(self, changes: Sequence[Change], is_over: Callable[[], bool]) -> list[BlockResult | BlockFailed]:
        """Returns the blocks of the next round. These are the saved ones if the saved round has the same `changes`.
        Otherwise, runs the blocks and saves them."""
        if self.saved:
            blocks = self.saved.pop(0)
            if [block["change"] for block in blocks] == [change.name for change in changes]:
                self.used.append(blocks)
                return [_result(block) for block in blocks]
            self.saved.clear()  # the trial took another course
        results = self.runner.run(changes, is_over)
        if not is_over() or not any(isinstance(result, BlockFailed) for result in results):
            self.used.append([_saved(*each) for each in zip(changes, results, strict=True)])
            text = "".join(json.dumps(blocks) + "\n" for blocks in self.used)
            (self.folder / FILE).with_suffix(".tmp").write_text(text, encoding="utf-8")
            os.replace((self.folder / FILE).with_suffix(".tmp"), self.folder / FILE)
        return results


def _saved(change: Change, result: BlockResult | BlockFailed) -> dict[str, Any]:
    if isinstance(result, BlockFailed):
        return {"change": change.name, "failure": str(result)}
    return {"change": change.name, **asdict(result), "run": str(result.run)}


def _result(block: dict[str, Any]) -> BlockResult | BlockFailed:
    if "failure" in block:
        return BlockFailed(str(block["failure"]))
    given = {
        **{name: value for name, value in block.items() if name != "change"},
        "run": Path(str(block["run"])),
        "losses": tuple(block["losses"]),
        "uncopied": tuple(block["uncopied"]),
    }
    return BlockResult(**given)
