"""All facts of a run, in one mapping: from the process, torch, the loaders, the model, the link and the options."""

from collections.abc import Mapping
from typing import Any

from tb_bottleneck.monitor.facts import process, process_groups, torch_settings
from tb_bottleneck.monitor.facts.device import PcieLinkFacts
from tb_bottleneck.monitor.facts.loader import LoaderFacts
from tb_bottleneck.monitor.facts.model import ModelFacts
from tb_bottleneck.monitor.facts.torch_settings import CompileLog
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.steps.step_clock import StepClock
from tb_bottleneck.monitor.workers.loader_stacks import SAMPLES, LoaderStacks


class RunFacts:
    """Collects all facts about a run.

    `ranks` has `rank` and `world_size` as they were at the start. The values of torch's process group, which may be
    created later, replace them. `revision` is the version of the program that the user states; None if the user states
    none. `sample_workers` is False if the stacks of loader workers are not sampled."""

    def __init__(
        self, clock: StepClock, guard: Guard, ranks: Mapping[str, object], revision: str | None, sample_workers: bool
    ) -> None:
        self._clock = clock
        self._guard = guard
        self._ranks = ranks
        self._stated = {} if revision is None else {"git_revision": revision}
        self._thread_pools: dict[str, object] = {}
        self.machine: Mapping[str, float] = {}
        """The figures of monitor/machine_check.py; empty if nothing was measured."""
        self.models = ModelFacts()
        self.loaders = LoaderFacts()
        self.stacks = LoaderStacks() if sample_workers else None
        self.link = PcieLinkFacts()
        self.compile_log = CompileLog(guard)

    def collect(self) -> dict[str, object]:
        """Returns the facts of the run (process, torch settings, loaders, models) by name. Never raises."""
        samples = self._guard.call(SAMPLES, self.stacks.facts) if self.stacks is not None else None
        return {
            **self._ranks,
            **process.collect(),
            **torch_settings.collect(),
            **self.loaders.facts(self._clock.trained_iterators()),
            **(samples or {}),
            **(self._guard.call("compile_log", self.compile_log.facts) or {}),
            **self.models.facts,
            **self._thread_pool_facts(),
            **self.link.facts(),
            **self._stated,
            **({"machine_figures": self.machine} if self.machine else {}),
        }

    def late_metadata(self) -> str | None:
        """Returns facts about the recorded steps as JSON text: `compile_log` if torch.compile compiled something, and
        the collectives of Gloo. Returns None if there are none."""
        facts = self.compile_log.facts() if self.compile_log.has_changed() else {}
        facts = {**facts, **process_groups.host_collectives()}
        return process.metadata_text(facts) if facts else None

    def _thread_pool_facts(self) -> dict[str, object]:
        """Returns the facts about the CPU thread pools of this process. They are collected only once, because the
        search visits all loaded libraries."""
        if not self._thread_pools:
            self._thread_pools = self._guard.call("blas", _thread_pools) or {"blas_pools": []}
        return self._thread_pools


def _thread_pools() -> dict[str, Any]:
    from tb_bottleneck.monitor.samplers.cpu import thread_pool_facts

    return thread_pool_facts()
