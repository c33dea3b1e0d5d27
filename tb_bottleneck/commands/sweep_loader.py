"""`tb-bottleneck sweep-loader`: measures a dataset with many DataLoader settings, and recommends one."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.tools.loader_sweep.endless_loaders import LoaderSetting, SweepLoaders
    from tb_bottleneck.tools.loader_sweep.sweep import Sweep, SweepFailure, SweepResult

EXAMPLES = """\
examples:
  tb-bottleneck sweep-loader train.py:make_dataset
  tb-bottleneck sweep-loader mypackage.data:loader_arguments --seconds-per-setting 5
  tb-bottleneck sweep-loader train.py:make_dataset --workers 4,8 --prefetch 2 --json

make_dataset() takes no arguments and returns a Dataset, a DataLoader, or the arguments of a DataLoader:
  def loader_arguments():
      return {"dataset": ImageFolder("data/train", transform), "batch_size": 256, "shuffle": True}
"""

MAX_SECONDS, MAX_COUNT = 3600, 1024

_DESCRIPTION = (
    "Measures the samples per second of a dataset for combinations of workers, pinned memory and prefetching, and "
    "recommends the smallest setting that is within noise of the best. It does not train. Each setting continues to "
    "read where the previous one stopped. Batches are copied to the GPU if there is one; otherwise pinned memory is "
    "not tried."
)


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    sweep = add_subparser(
        commands,
        "sweep-loader",
        "measure a dataset with many DataLoader settings",
        _DESCRIPTION,
        EXAMPLES,
    )
    sweep.add_argument(
        "factory", metavar="MODULE:FUNCTION", help="function that returns the dataset, or FILE.py:FUNCTION; see below"
    )
    sweep.add_argument(
        "--seconds-per-setting",
        type=_seconds,
        default=3.0,
        metavar="S",
        help="duration of each measurement in seconds, after the warm-up (default: 3)",
    )
    sweep.add_argument(
        "--workers",
        type=_counts,
        metavar="N,N,...",
        help="numbers of workers to try (default: 0, 1, 2, 4, ... up to the usable cores, and more while it helps)",
    )
    sweep.add_argument(
        "--prefetch",
        type=_prefetches,
        metavar="N,N,...",
        help="prefetch factors to try: batches per worker (default: 2,4)",
    )
    sweep.add_argument("--json", action="store_true", help="print one JSON object")
    sweep.set_defaults(run=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    from tb_bottleneck.tools.loader_sweep import sweep
    from tb_bottleneck.tools.loader_sweep.endless_loaders import call_factory, sweep_loaders

    loaders = sweep_loaders(call_factory(options.factory))
    tried = _settings(options, pinnings=(False, True) if loaders.device else (False,), given=loaders.given)
    goes_on = options.workers is None
    results = _results(sweep.Sweep(loaders, options.seconds_per_setting), tried, goes_on)
    measured = [result for result in results if isinstance(result, sweep.SweepResult)]
    best = sweep.knee(measured) if measured else None
    if options.json:
        print(json.dumps(_as_json(results, best, loaders)))
    else:
        _print(results, best, loaders)
    if best is None:
        print("tb-bottleneck: no setting could be measured", file=sys.stderr)
    return 0 if best else 1


def _settings(
    options: argparse.Namespace, pinnings: Sequence[bool], given: "LoaderSetting | None"
) -> list["LoaderSetting"]:
    from tb_bottleneck.monitor.facts.cpu import usable_cores
    from tb_bottleneck.tools.loader_sweep import sweep

    prefetches = options.prefetch or sweep.PREFETCHES
    if options.workers is not None:
        tried = sweep.all_combinations(options.workers, prefetches, pinnings)
    else:
        tried = sweep.settings(usable_cores(), prefetches, pinnings)
    return tried if given is None else sorted({*tried, given})


def _results(sweep: "Sweep", tried: Sequence["LoaderSetting"], goes_on: bool) -> list["SweepResult | SweepFailure"]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from tb_bottleneck.monitor.facts.cpu import usable_cores
    from tb_bottleneck.tools.loader_sweep.sweep import is_hopeless, next_setting

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    results: list[SweepResult | SweepFailure] = []
    waiting = list(tried)
    # auto_refresh would draw in a thread. Workers are forked from this process, and a fork would copy the lock of that
    # thread in the locked state.
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=len(tried))
        while waiting:
            setting = waiting.pop(0)
            text = f"{setting.workers} workers, prefetch {setting.prefetch}{', pinned' if setting.pinned else ''}"
            bar.update(task, description=text, refresh=True)
            results.append(sweep.measure(setting))
            bar.advance(task)
            if is_hopeless(results):
                break
            more = next_setting(results, usable_cores()) if goes_on and not waiting else None
            if more is not None and more not in {result.setting for result in results}:
                waiting.append(more)
                bar.update(task, total=len(results) + 1)
    return results


def _as_json(
    results: Sequence["SweepResult | SweepFailure"], best: "SweepResult | None", loaders: "SweepLoaders"
) -> dict[str, object]:
    from tb_bottleneck.monitor.facts.cpu import usable_cores
    from tb_bottleneck.tools.loader_sweep import sweep

    rows: list[dict[str, object]] = []
    for result in results:
        row: dict[str, object] = {**_columns(result.setting), "yours": result.setting == loaders.given}
        if isinstance(result, sweep.SweepFailure):
            row["failed"] = result.because
        else:
            row |= {
                "samples_per_s": result.samples_per_s,
                "noise": result.noise,
                "first_batch_s": result.first_batch_s,
                "batches": result.batches,
                "seconds": result.seconds,
            }
        rows.append(row)
    answer: dict[str, object] = {"schema": 1, "cores": usable_cores(), "settings": rows, "use": None, "code": None}
    if best is not None:
        answer |= {"use": _columns(best.setting), "code": sweep.code(best.setting)}
    return answer


def _columns(setting: "LoaderSetting") -> dict[str, object]:
    return {"num_workers": setting.workers, "pin_memory": setting.pinned, "prefetch_factor": setting.prefetch or None}


def _print(
    results: Sequence["SweepResult | SweepFailure"], best: "SweepResult | None", loaders: "SweepLoaders"
) -> None:
    from tb_bottleneck.tools.loader_sweep import sweep

    print("workers  pinned  prefetch   samples/s    ±    first batch")
    for result in results:
        setting = result.setting
        columns = f"{setting.workers:7}  {'yes' if setting.pinned else 'no':>6}  {setting.prefetch or '-':>8}  "
        mark = " <- yours" if setting == loaders.given else ""
        if isinstance(result, sweep.SweepFailure):
            print(f"{columns}  failed: {result.because}{mark}")
            continue
        mark = f" <- use this{' (yours)' if mark else ''}" if result is best else mark
        print(
            f"{columns}{result.samples_per_s:10.1f}  {result.noise * 100:3.0f} %  {result.first_batch_s:9.2f} s{mark}"
        )
    if best is None:
        return
    print(f"\n{sweep.code(best.setting)}")
    by_setting = {result.setting: result for result in results if isinstance(result, sweep.SweepResult)}
    base = by_setting.get(loaders.given) if loaders.given else by_setting[min(by_setting)]
    if base is not None and base is not best:
        name = "your own setting" if loaders.given else f"num_workers={base.setting.workers}"
        print(f"delivers {best.samples_per_s / base.samples_per_s:.1f} times the samples of {name}")
    if not min(by_setting).workers:
        print("Without workers the training waits for each batch, so 0 is recommended only if nothing else works.")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of seconds, more than 0 and at most {MAX_SECONDS}")
    return seconds


def _counts(text: str, least: int = 0) -> list[int]:
    items = text.split(",")
    counts = [int(word) for word in items if word.isascii() and word.isdecimal() and len(word) < 9]
    if len(counts) < len(items) or not all(least <= count <= MAX_COUNT for count in counts):
        raise argparse.ArgumentTypeError(f"{text!r}: must be whole numbers from {least} to {MAX_COUNT}, as in 4,8")
    return counts


def _prefetches(text: str) -> list[int]:
    return _counts(text, least=1)
