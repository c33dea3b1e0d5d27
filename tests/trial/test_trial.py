"""Trials in turn, with blocks that a test makes up."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trial.block_result import BlockFailed, BlockResult
from tb_bottleneck.trial.changes import Change, parsed
from tb_bottleneck.trial.plan import expectations, plan_lines, run_plan
from tb_bottleneck.trial.report import json_of, text_of
from tb_bottleneck.trial.saved import SavedBlocks
from tb_bottleneck.trial.statistics import LOOK_AHEAD
from tb_bottleneck.trial.trial import Trial, run_trial

PARTS = ("loader_wait", "forward", "backward", "optimizer", "evaluation", "checkpoint", "logging", "garbage_collection")


class Blocks:
    """Blocks of made-up programs: the step in ms by the names of settings; each block takes ten seconds."""

    def __init__(
        self, steps: dict[str, float], failing: str = "", interrupt_after: int = 1000, noise: float = 0.002
    ) -> None:
        self.steps, self.failing, self.interrupt_after, self.noise = steps, failing, interrupt_after, noise
        self.order: list[str] = []
        self.now = 0.0
        self.samples = 8.0

    def clock(self) -> float:
        return self.now

    def run(self, changes: Sequence[Change], is_over: Callable[[], bool]) -> list[BlockResult | BlockFailed]:
        return [self.block(change) for change in changes]

    def block(self, change: Change) -> BlockResult | BlockFailed:
        number = len(self.order)
        if len(self.order) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.now += 10
        self.order.append(change.name)
        if change.name == self.failing:
            return BlockFailed("it ended with status 3")
        step = 1e6 * 20.0
        for name, _ in change.settings:
            step *= self.steps[name]
        step *= 1 + self.noise * (number % 3)
        parts = dict.fromkeys(PARTS, 0.0) | {"loader_wait": step / 2, "other": step / 2}
        return BlockResult(step, 100, self.samples, parts, (1.0,) * 20, 1 << 20, Path("block"))


def trial_of(blocks: Blocks, *words: str, deadline: float = 1e9) -> Trial:
    return run_trial(blocks, parsed(words), deadline, clock=blocks.clock)


def test_blocks_alternate_and_end_as_soon_as_the_gain_is_known() -> None:
    blocks = Blocks({"tf32": 0.5})
    trial = trial_of(blocks, "tf32")
    assert blocks.order == ["unchanged", "tf32", "tf32", "unchanged", "unchanged", "tf32"]
    gain = trial.gain(trial.changed[0])
    assert gain is not None
    assert (gain.verdict, round(gain.gain, 1)) == ("faster", 2.0)
    text = "\n".join(text_of(trial))
    assert "tf32: 1.99x as fast" in text
    assert "losses agree" in text
    assert "waiting for data: 10.0 ms -> 5.0" in text.replace("5.01", "5.0")
    json.dumps(json_of(trial), allow_nan=False)


def test_steps_whose_samples_are_not_known_are_called_that() -> None:
    """Another batch size is not slower because its steps do more work."""
    changes = [Change(arguments=("--batch-size", "64")), *parsed(["tf32"])]
    blocks = Blocks({"tf32": 0.5})
    for samples, said in ((0.0, True), (8.0, False)):
        blocks.samples = samples
        texts = ["\n".join(text_of(run_trial(blocks, [change], 1e9, clock=blocks.clock))) for change in changes]
        assert ["samples per step are not known" in text for text in texts] == [said, False]


def test_several_values_are_a_curve_and_a_known_one_takes_no_more_part() -> None:
    blocks = Blocks({"workers": 0.5})
    trial = trial_of(blocks, "workers=2,4")
    assert [trial.gain(variant).verdict for variant in trial.changed] == ["faster", "faster"]  # type: ignore[union-attr]
    assert blocks.order.count("unchanged") == 3


def test_the_time_ends_a_trial_that_is_not_known() -> None:
    blocks = Blocks({"tf32": 0.97})
    trial = trial_of(blocks, "tf32", deadline=45)
    assert blocks.now <= 45
    assert not trial.is_finished


def test_a_trial_that_cannot_become_known_in_its_time_ends_early() -> None:
    blocks = Blocks({"tf32": 1.0}, noise=1.0)
    trial = trial_of(blocks, "tf32", deadline=150)
    assert len(trial.before.blocks) == LOOK_AHEAD
    assert blocks.now == 100


def test_a_trial_goes_on_with_the_blocks_of_one_that_was_interrupted(tmp_path: Path) -> None:
    first = Blocks({"tf32": 0.5}, interrupt_after=3)
    assert run_trial(SavedBlocks(first, tmp_path), parsed(["tf32"]), 1e9).interrupted
    with (tmp_path / "blocks.jsonl").open("a") as file:
        file.write('{"change": "tf')  # killed while it wrote
    second = Blocks({"tf32": 0.5})
    runner = SavedBlocks(second, tmp_path)
    assert runner.load() == 1, "the round that was interrupted is not kept"
    trial = run_trial(runner, parsed(["tf32"]), 1e9)
    assert first.order == ["unchanged", "tf32", "tf32"]
    assert second.order == ["tf32", "unchanged", "unchanged", "tf32"]
    assert len(trial.before.blocks) == len(trial.changed[0].blocks) == 3
    assert trial.changed[0].blocks[0].losses == (1.0,) * 20


def test_saved_blocks_of_another_course_are_not_used(tmp_path: Path) -> None:
    run_trial(SavedBlocks(Blocks({"tf32": 0.5}), tmp_path), parsed(["tf32"]), 1e9)
    other = Blocks({"fused": 0.5})
    runner = SavedBlocks(other, tmp_path)
    runner.load()
    run_trial(runner, parsed(["fused"]), 1e9)
    assert other.order[:2] == ["unchanged", "fused"]


def test_a_saved_failure_is_a_failure_again(tmp_path: Path) -> None:
    run_trial(SavedBlocks(Blocks({"tf32": 1.0}, failing="tf32"), tmp_path), parsed(["tf32"]), 1e9)
    runner = SavedBlocks(Blocks({"tf32": 1.0}), tmp_path)
    runner.load()
    assert "status 3" in run_trial(runner, parsed(["tf32"]), 1e9).changed[0].failure


def test_an_interrupt_keeps_what_is_known() -> None:
    trial = trial_of(Blocks({"tf32": 0.5}, interrupt_after=4), "tf32")
    assert trial.interrupted
    assert trial.gain(trial.changed[0]) is not None


def test_a_block_that_fails_later_costs_its_pair_only() -> None:
    blocks = Blocks({"tf32": 0.5, "fused": 0.8}, noise=0.2)
    run = blocks.run

    def failing(changes: Sequence[Change], is_over: Callable[[], bool]) -> list[BlockResult | BlockFailed]:
        results = run(changes, is_over)
        return [BlockFailed("out of memory"), *results[1:]] if 4 <= len(blocks.order) <= 6 else results

    blocks.run = failing  # type: ignore[method-assign]
    trial = trial_of(blocks, "tf32")
    (variant,) = trial.changed
    assert not variant.failure
    assert len(variant.blocks) == len(variant.before) == len(trial.before.blocks) - variant.failed_later
    assert variant.failed_later == 1


def test_an_interrupt_before_anything_is_measured_says_so() -> None:
    with pytest.raises(BlockFailed, match="interrupted in its first round"):
        trial_of(Blocks({"tf32": 0.5}, interrupt_after=1), "tf32")


def test_a_changed_program_that_fails_is_named_and_an_unchanged_one_ends_the_trial() -> None:
    trial = trial_of(Blocks({"tf32": 0.5, "fused": 0.5}, failing="tf32"), "tf32")
    assert "tf32: not measured. it ended with status 3" in "\n".join(text_of(trial))
    with pytest.raises(BlockFailed):
        trial_of(Blocks({"tf32": 0.5}, failing="unchanged"), "tf32")


def test_a_plan_keeps_what_helps() -> None:
    def finding(cause: str, trial: str, gain: float) -> pb.Finding:
        speedup = pb.Speedup(expected=gain, low=gain - 0.1, high=gain + 0.1, basis="replay" if gain > 1 else "none")
        return pb.Finding(cause=cause, title=cause, fix=pb.Fix(trial=trial), speedup=speedup)

    report = pb.Report(
        findings=[finding("a", "fused", 1.1), finding("b", "tf32", 2.0), finding("c", "--rev BRANCH --cause c", 1.0)]
    )
    blocks = Blocks({"tf32": 0.5, "fused": 1.001})
    steps = list(run_plan(blocks, expectations(report, "run"), 1e9, lambda *_: None, blocks.clock))
    assert [(step.expectation.cause, step.kept) for step in steps] == [("b", True), ("a", False), ("c", False)]
    assert "tf32 fused" in blocks.order, "the second is tried on top of the first"
    lines = "\n".join(plan_lines(steps))
    assert "tf32: 2.00x expected (1.90 to 2.10); 1.99x measured, faster, kept" in lines
    assert "no setting fixes it: no gain predicted; not measured" in lines


def test_the_report_names_modules_that_the_change_does_not_reach() -> None:
    trial = trial_of(Blocks({"tf32": 0.5}), "tf32")
    trial.changed[0].blocks[-1] = replace(trial.changed[0].blocks[-1], uncopied=("src/model.py", "src/data.py"))
    assert "src/model.py and 1 more were imported from the work tree itself" in "\n".join(text_of(trial))
