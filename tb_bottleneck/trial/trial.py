"""Runs variants of a program in rounds, until the gain of each variant is known or the time is over."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol

from tb_bottleneck.trial.block_result import BlockFailed, BlockResult
from tb_bottleneck.trial.changes import Change
from tb_bottleneck.trial.statistics import LossAgreement, MeasuredGain, can_become_known, loss_agreement, measured_gain

MAX_PAIRS = 20
MAX_FAILED = 2
UNCHANGED = Change()


class Runner(Protocol):
    """The interface of an object that runs blocks, such as Blocks or SavedBlocks."""

    def run(self, changes: Sequence[Change], is_over: Callable[[], bool]) -> list[BlockResult | BlockFailed]:
        """Runs one block (run of the program) for each of `changes`, and returns the results in this order.

        Blocks are ended as failed when `is_over` returns True.
        """
        ...


@dataclass
class Variant:
    """One variant of the program with its blocks (runs) so far. If the first block of the variant failed, `failure` is
    the reason, and there are no blocks."""

    change: Change
    blocks: list[BlockResult] = field(default_factory=list)
    before: list[BlockResult] = field(default_factory=list)
    """For each block, the block of the unchanged program in the same round."""
    failure: str = ""
    failed_later: int = 0
    """Number of blocks that failed after an earlier block of the variant had succeeded."""

    @property
    def step_ns(self) -> float:
        """Mean step time in ns over all blocks."""
        return fmean(block.step_ns for block in self.blocks)

    @property
    def samples_per_s(self) -> float:
        """Mean number of samples per second over all blocks; 0 if the samples per step are not known."""
        rates = [block.samples / block.step_ns * 1e9 for block in self.blocks]
        return fmean(rates)

    @property
    def parts(self) -> dict[str, float]:
        """Mean time of each part of the step in ns."""
        return {name: fmean(block.parts[name] for block in self.blocks) for name in self.blocks[0].parts}


@dataclass
class Trial:
    """The unchanged program and its changed variants. A round has one block (run) of the unchanged program, and one of
    each variant whose gain is not known yet."""

    before: Variant
    changed: list[Variant]
    interrupted: bool = False

    def gain(self, variant: Variant) -> MeasuredGain | None:
        """Returns the gain of a variant from its blocks so far; None if it has no blocks."""
        before, after = self._pairs(variant)
        return measured_gain(before, after) if after else None

    def losses(self, variant: Variant) -> LossAgreement | None:
        """Returns how much the losses of a variant differ from those of the unchanged program; None if unknown."""
        return loss_agreement([b.losses for b in self.before.blocks], [b.losses for b in variant.blocks])

    def is_worth(self, variant: Variant, pairs: int) -> bool:
        """Returns True if more blocks of `variant`, up to `pairs` pairs of blocks in total, may lead to a verdict."""
        before, after = self._pairs(variant)
        if variant.failure or variant.failed_later >= MAX_FAILED or len(after) >= pairs:
            return False
        return not after or (not measured_gain(before, after).is_known and can_become_known(before, after, pairs))

    @property
    def is_finished(self) -> bool:
        """True if more blocks, up to MAX_PAIRS pairs, would not lead to a verdict for any variant."""
        return not any(self.is_worth(variant, MAX_PAIRS) for variant in self.changed)

    def _pairs(self, variant: Variant) -> tuple[list[float], list[float]]:
        """Returns two lists with one element per round: the step times in ns of the unchanged program and of `variant`.

        If the samples per step of all blocks are known, the times are divided by them, so that a larger batch alone is
        no loss and a smaller one no gain.
        """
        pairs = list(zip(variant.before, variant.blocks, strict=True))
        known = all(block.samples for pair in pairs for block in pair)
        costs = [[block.step_ns / (block.samples if known else 1.0) for block in pair] for pair in pairs]
        return [before for before, _ in costs], [after for _, after in costs]


def run_trial(
    runner: Runner,
    changes: Sequence[Change],
    deadline: float,
    base: Change = UNCHANGED,
    told: Callable[[Trial, str], None] = lambda _trial, _text: None,
    clock: Callable[[], float] = time.monotonic,
) -> Trial:
    """Runs rounds of blocks until all gains are known or `deadline` (s, on `clock`) has passed.

    `base` is the variant with which the others are compared; by default, the unchanged program. `told` is called before
    each round with the trial and a text that names the variants of the round. If the user interrupts the trial
    (Ctrl-C), returns the results so far.

    Raises BlockFailed if no step of `base` can be measured in the first round.
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
            _add(trial, dict(zip(map(id, variants), results, strict=True)), first=not rounds)
    except KeyboardInterrupt:
        trial.interrupted = True
        if not trial.before.blocks:
            raise BlockFailed("the trial was interrupted in its first round") from None
    return trial


def _add(trial: Trial, results: Mapping[int, BlockResult | BlockFailed], first: bool) -> None:
    """Adds the results of a round to `trial`. `results` maps the id() of each variant to its result.

    If the unchanged program failed, raises BlockFailed in the first round; in a later round, ignores all results.
    """
    before = results[id(trial.before)]
    if isinstance(before, BlockFailed):
        if first:
            raise before
        return
    trial.before.blocks.append(before)
    for variant in (variant for variant in trial.changed if id(variant) in results):
        result = results[id(variant)]
        if isinstance(result, BlockResult):
            variant.blocks.append(result)
            variant.before.append(before)
        elif variant.blocks:
            variant.failed_later += 1
        else:
            variant.failure = str(result)


def _variants(trial: Trial, rounds: int, pairs: int) -> list[Variant]:
    """Returns the variants of a round in the order of their turns, which is reversed in every other round.

    A changed variant is left out if its gain is known, or cannot become known with `pairs` pairs of blocks. The list is
    empty if no changed variant is left. `rounds` is the number of rounds so far.
    """
    open_variants = [variant for variant in trial.changed if trial.is_worth(variant, pairs)]
    both = [trial.before, *open_variants] if open_variants else []
    return both if rounds % 2 == 0 else both[::-1]
