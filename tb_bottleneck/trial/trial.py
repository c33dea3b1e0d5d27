"""Runs variants of a program in turn until the gain of each is known, or the time is over."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

from tb_bottleneck.trial.blocks import BlockFailed, BlockResult
from tb_bottleneck.trial.changes import Change
from tb_bottleneck.trial.statistics import LossAgreement, MeasuredGain, loss_agreement, measured_gain

MAX_PAIRS = 20
UNCHANGED = Change()


class Runner(Protocol):
    """Runs blocks."""

    def run(self, change: Change, number: int, is_over: Callable[[], bool]) -> BlockResult:
        """Runs one block."""
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
        pairs = min(len(self.before.blocks), len(variant.blocks))
        return (
            measured_gain(self._costs(self.before, variant)[:pairs], self._costs(variant, self.before)[:pairs])
            if pairs
            else None
        )

    def losses(self, variant: Variant) -> LossAgreement | None:
        """Returns how far the losses of a variant are from those of the unchanged program; None if unknown."""
        return loss_agreement([b.losses for b in self.before.blocks], [b.losses for b in variant.blocks])

    @staticmethod
    def _costs(variant: Variant, other: Variant) -> list[float]:
        """Per sample if the samples of both are known: another batch size is then no gain by itself."""
        known = all(block.samples for block in (*variant.blocks, *other.blocks))
        return variant.costs if known else [block.step_ns for block in variant.blocks]

    @property
    def is_known(self) -> bool:
        """True if more blocks would change nothing."""
        gains = [self.gain(variant) for variant in self.changed if not variant.failure]
        return all(gain is not None and gain.is_known for gain in gains)


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
    number = 0
    try:
        for round_number in range(MAX_PAIRS):
            for variant in _order(trial, round_number):
                if clock() + longest > deadline and number > 1:
                    return trial
                told(trial, f"{variant.change.name}, block {len(variant.blocks) + 1}")
                began = clock()
                try:
                    variant.blocks.append(runner.run(variant.change, number, lambda: clock() > deadline))
                except BlockFailed as failure:
                    if variant is trial.before:
                        if variant.blocks:
                            return trial
                        raise
                    if not variant.blocks:
                        variant.failure = str(failure)
                number += 1
                longest = max(longest, clock() - began)
            if trial.is_known:
                break
    except KeyboardInterrupt:
        trial.interrupted = True
    return trial


def _order(trial: Trial, round_number: int) -> Iterator[Variant]:
    """Yields the variants of a round, in the opposite order in every other round: A B B A.

    A variant whose gain is known takes no more part.
    """
    open_variants = [trial.before]
    for variant in trial.changed:
        gain = trial.gain(variant)
        if not variant.failure and (gain is None or not gain.is_known):
            open_variants.append(variant)
    yield from open_variants if round_number % 2 == 0 else reversed(open_variants)
