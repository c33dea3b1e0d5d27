"""Runs variants of a program until the gain of each is known, or the time is over."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

from tb_bottleneck.trial.block_result import BlockFailed, BlockResult
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

    def run(self, changes: Sequence[Change], is_over: Callable[[], bool]) -> list[BlockResult | BlockFailed]:
        """Runs one block with each of the changes."""
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
    """The unchanged program and its changed variants. A round has a block of all variants that are not known yet."""

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

    `told` is called before each round with its variants. Raises BlockFailed if the unchanged program gives no steps.
    """
    trial = Trial(Variant(base), [Variant(change) for change in changes])
    longest = 0.0
    try:
        for rounds in range(MAX_PAIRS):
            left = deadline - clock()
            variants = _variants(trial, rounds, min(MAX_PAIRS, rounds + max(int(left / max(longest, 1e-3)), 1)))
            if not variants or (rounds and longest > left):
                break
            told(trial, f"{', '.join(variant.change.name for variant in variants)}: round {rounds + 1}")
            results = runner.run([variant.change for variant in variants], lambda: clock() > deadline)
            longest = max(longest, left - (deadline - clock()))
            failures = [result for result in results if isinstance(result, BlockFailed)]
            if rounds and failures:
                break  # the others have no block to be compared with
            for variant, result in zip(variants, results, strict=True):
                if isinstance(result, BlockResult):
                    variant.blocks.append(result)
                elif variant is trial.before:
                    raise result
                else:
                    variant.failure = str(result)
    except KeyboardInterrupt:
        trial.interrupted = True
    return trial


def _variants(trial: Trial, rounds: int, pairs: int) -> list[Variant]:
    """Returns the variants of a round in the order of their turns, in every other round the opposite one.

    A variant whose gain is known, or cannot become known with so many pairs, takes no more part.
    """
    open_variants = [variant for variant in trial.changed if trial.is_worth(variant, pairs)]
    both = [trial.before, *open_variants] if open_variants else []
    return both if rounds % 2 == 0 else both[::-1]
