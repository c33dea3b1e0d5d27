"""Collects what the stack samplers in the workers write, as one fact of the run with a bounded size."""

import json
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from tb_bottleneck.monitor.workers.stack_sampler import SampledWorkerInit

SAMPLES = "loader_stacks"
"""The name of the signal."""

MAX_STACKS = 60
"""Maximum number of stacks in the fact: those with the most time. The time of the others is in `other_ns`."""
KEPT_STACKS = 1_000
MAX_READ = 200
"""Maximum number of files that one call of `facts` reads, which takes about 0.1 ms per file. The limit is needed
because the training thread makes such a call before it records a trace."""
PREFIX = "tb_bottleneck_stacks_"
OLD_SECONDS = 3600.0
_SUMS = ("other_ns", "waiting_ns", "read_bytes", "reads", "disk_bytes", "opens", "core_ns")


class LoaderStacks:
    """The sampled time of each stack in ns, summed over all workers of this process's loaders."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._stacks: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._sampled: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self.batches = 0
        """Batches that the training received from workers since the sampling began."""

    def attach(self, loader: Any) -> Callable[[], None] | None:
        """Makes the workers of the next iterator of `loader` sample their stacks. For this, replaces the loader's
        `worker_init_fn` by a function that also calls the user's `worker_init_fn`.

        Returns a function that restores the loader's `worker_init_fn`; None for a loader without workers.
        """
        if not loader.num_workers:
            return None
        if self._folder is None:
            remove_left_folders()
            self._folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}_")
        original = loader.worker_init_fn
        loader.worker_init_fn = SampledWorkerInit(self._folder, original)

        def restore() -> None:
            loader.worker_init_fn = original

        return restore

    def facts(self) -> dict[str, object]:
        """Returns {"loader_stacks": ...}, or {} if no worker was sampled. Any thread may call this."""
        with self._lock:
            self._read()
            if not self._stacks:
                return {}
            most = self._stacks.most_common(KEPT_STACKS)
            self._sums["other_ns"] += sum(self._stacks.values()) - sum(ns for _, ns in most)
            self._stacks = Counter(dict(most))
            fact: dict[str, object] = {name: self._sums[name] for name in _SUMS if name in self._sums}
            fact["other_ns"] = self._sums["other_ns"] + sum(ns for _, ns in most[MAX_STACKS:])
            fact |= {"processes": len(self._sampled), "batches": self.batches * self._sampled_share()}
            return {"loader_stacks": fact | {"stacks": [[text, ns] for text, ns in most[:MAX_STACKS]]}}

    def close(self) -> None:
        """Reads the last files, and deletes their folder. Workers that still run then stop sampling."""
        with self._lock:
            self._read()
            folder, self._folder = self._folder, None
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def _sampled_share(self) -> float:
        """Returns the fraction (0 to 1) of the workers' time whose samples were read. The fraction is below 1 while
        workers run, because they have not yet written the samples of the last seconds.

        Returns 1 if /proc does not show which workers run."""
        now, sampled, lived = time.perf_counter_ns(), 0, 0
        for process, (began, until) in self._sampled.items():
            sampled += until - began
            lived += (now if Path("/proc", str(process)).exists() else until) - began
        return sampled / lived if 0 < sampled < lived else 1.0

    def _read(self) -> None:
        if self._folder is None:
            return
        try:
            entries = [entry for entry in os.scandir(self._folder) if entry.name.endswith(".json")]
        except OSError:  # somebody has cleaned the directory up
            return
        for entry in islice(entries, MAX_READ):
            try:
                with open(entry.path, encoding="utf-8") as file:
                    totals = json.load(file)
                os.unlink(entry.path)
                self._stacks.update(totals["stacks"])
                self._sums.update({name: totals[name] for name in _SUMS if name in totals})
                _, before = self._sampled.get(totals["process"], (0, 0))  # files come in any order
                self._sampled[totals["process"]] = (totals["began_ns"], max(totals["until_ns"], before))
            except (OSError, ValueError, KeyError, TypeError):
                continue


def remove_left_folders() -> None:
    """Deletes the folders of samples that killed trainings left behind. Folders of other users cannot be deleted, and
    remain."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        process = folder.name.removeprefix(PREFIX).partition("_")[0]
        try:
            # /proc does not show a process of another container. But a running process writes every few seconds.
            is_old = time.time() - folder.stat().st_mtime > OLD_SECONDS
        except OSError:
            continue
        if is_old and not Path("/proc", process).exists():
            shutil.rmtree(folder, ignore_errors=True)
