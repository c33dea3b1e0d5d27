"""Runs variants of a program in turn until the gain of each is known, or the time is over."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

from tb_bottleneck.trial.block_runner import BlockFailed, BlockResult
from tb_bottleneck.trial.changes import Change
from tb_bottleneck.trial.statistics import (
    LossAgreement,
    MeasuredGain,
    can_become_known,
    loss_agreement,
    measured_gain,
)

MAX_PAIRS = 20
UNCHANGED = Change()


class Runner(Protocol):
    """Runs blocks."""

    def run(self, change: Change, is_over: Callable[[], bool]) -> BlockResult:
        """Runs one block. Raises BlockFailed."""
        ...


@dataclass
class Variant:
    """One variant of the program with its blocks so far. `failure` says why it has none."""

    change: Change
    blocks: list[BlockResult] = field(default_factory=list)
    failure: str = ""

    @property
    def step_ns(self) -> float:
        """Mean step in ns."""
        return fmean(block.step_ns for block in self.blocks)

    @property
    def samples_per_s(self) -> float:
        """Samples per second; 0 if they are not known."""
        rates = [block.samples / block.step_ns * 1e9 for block in self.blocks]
        return fmean(rates)

    @property
    def parts(self) -> dict[str, float]:
        """Mean parts of the step in ns."""
        return {name: fmean(block.parts[name] for block in self.blocks) for name in self.blocks[0].parts}

    @property
    def costs(self) -> list[float]:
        """The cost of each block: ns per sample if samples are known, otherwise per step."""
        return [block.step_ns / (block.samples or 1.0) for block in self.blocks]


@dataclass
class Trial:
    """The unchanged program and its changed variants. Blocks of all variants that are not known yet run in turn."""

    before: Variant
    changed: list[Variant]
    interrupted: bool = False

    def gain(self, variant: Variant) -> MeasuredGain | None:
        """Returns the gain of a variant so far; None without a pair of blocks."""
        before, after = self._pairs(variant)
        return measured_gain(before, after) if after else None

    def losses(self, variant: Variant) -> LossAgreement | None:
        """Returns how far the losses of a variant are from those of the unchanged program; None if unknown."""
        return loss_agreement([b.losses for b in self.before.blocks], [b.losses for b in variant.blocks])

    def is_worth(self, variant: Variant, pairs: int) -> bool:
        """Returns True if more blocks of a variant may change what is said, with so many pairs at most."""
        before, after = self._pairs(variant)
        if variant.failure or len(after) >= pairs:
            return False
        return not after or (not measured_gain(before, after).is_known and can_become_known(before, after, pairs))

    @property
    def is_finished(self) -> bool:
        """True if more blocks would change nothing, even with more time."""
        return not any(self.is_worth(variant, MAX_PAIRS) for variant in self.changed)

    def _pairs(self, variant: Variant) -> tuple[list[float], list[float]]:
        """Returns the costs of the pairs of blocks: per sample if the samples of all are known, so that another batch
        size is no gain by itself."""
        pairs = min(len(self.before.blocks), len(variant.blocks))
        known = all(block.samples for block in (*self.before.blocks, *variant.blocks))
        before, after = (
            each.costs if known else [block.step_ns for block in each.blocks] for each in (self.before, variant)
        )
        return before[:pairs], after[:pairs]


def run_trial(
    runner: Runner,
    changes: Sequence[Change],
    deadline: float,
    base: Change = UNCHANGED,
    told: Callable[[Trial, str], None] = lambda _trial, _text: None,
    clock: Callable[[], float] = time.monotonic,
) -> Trial:
    """Runs the trial until it is known or `deadline` (of the clock, in s) has passed. Ctrl-C keeps what is known.

    `base` is the variant that the others are compared with; by default, the unchanged program.

    `told` is called before each block with what it is. Raises BlockFailed if the unchanged program gives no steps.
    """
    trial = Trial(Variant(base), [Variant(change) for change in changes])
    longest = 0.0
    blocks = 0
    try:
        for round_number in range(MAX_PAIRS):
            pairs = _pairs_at_most(trial, round_number, longest, deadline - clock())
            order = list(_order(trial, round_number, pairs))
            if not order:
                break
            for variant in order:
                if clock() + longest > deadline and blocks > 1:
                    return trial
                told(trial, f"{variant.change.name}, block {len(variant.blocks) + 1}")
                began = clock()
                try:
                    variant.blocks.append(runner.run(variant.change, lambda: clock() > deadline))
                except BlockFailed as failure:
                    if variant is trial.before:
                        if variant.blocks:
                            return trial
                        raise
                    if not variant.blocks:
                        variant.failure = str(failure)
                blocks += 1
                longest = max(longest, clock() - began)
    except KeyboardInterrupt:
        trial.interrupted = True
    return trial


def _pairs_at_most(trial: Trial, rounds: int, longest_s: float, left_s: float) -> int:
    """Returns how many pairs of blocks each variant can have in the time that is left."""
    variants = 1 + sum(trial.is_worth(variant, MAX_PAIRS) for variant in trial.changed)
    return min(MAX_PAIRS, rounds + max(int(left_s / max(longest_s, 1e-3) / variants), 1))


def _order(trial: Trial, round_number: int, pairs: int) -> Iterator[Variant]:
    """Yields the variants of a round, in the opposite order in every other round: A B B A.

    A variant whose gain is known, or cannot become known with so many pairs, takes no more part.
    """
    open_variants = [variant for variant in trial.changed if trial.is_worth(variant, pairs)]
    if open_variants:
        both = [trial.before, *open_variants]
        yield from both if round_number % 2 == 0 else reversed(both)
