"""`python -m demo table`: compares verdicts and predicted gains of the recorded pairs with the measured times."""

import argparse
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import memory_table, sweeps
from demo.index import read_index
from demo.pairs import PAIRS, RECORDED, Pair
from demo.simulated import SIMULATED, SITUATIONS
from demo.sweeps import ms
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.schema.bottleneck_pb2 import Report

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- demo table: begin -->", "<!-- demo table: end -->"

_HEAD = (
    "| problem | on | expected | verdict, slow | verdict, fixed | before | predicted after | measured after | error |",
    "|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class PairResult:
    """One pair. Times are in ns without a profiler, per step of the slow variant's work."""

    pair: Pair
    device: str
    slow: Report
    fixed: Report
    before_ns: float
    after_ns: float

    @property
    def predicted_ns(self) -> float | None:
        """The predicted time after the fix, replayed from the slow variant alone; None if its gain was not replayed."""
        causes = self.pair.fixed_causes.split(" or ")
        for finding in self.slow.findings:
            if finding.cause in causes and finding.speedup.basis == "replay":
                return self.before_ns / finding.speedup.expected
        return None

    @property
    def error(self) -> float | None:
        """The relative error of the prediction: 0.1 means that it is 10 % too long."""
        return None if self.predicted_ns is None else self.predicted_ns / self.after_ns - 1


def main(arguments: Sequence[str]) -> int:
    """Prints the table, or writes it into README.md. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m demo table", description=__doc__)
    parser.add_argument("--logdir", type=Path, default=RECORDED, metavar="DIR", help="other recordings of the pairs")
    parser.add_argument("--write", action="store_true", help="replace the table in README.md")
    options = parser.parse_args(arguments)
    others = (
        sweeps.lines_of(list(sweeps.runs(options.logdir))),
        memory_table.lines_of(list(memory_table.rows(options.logdir))),
        list(simulated_table(options.logdir)),
    )
    text = "\n".join(
        [*lines_of(list(rows(options.logdir))), *(line for part in others if part for line in ["", *part])]
    )
    if options.write:
        before, rest = README.read_text(encoding="utf-8").split(BEGIN)
        README.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    else:
        print(text)
    return 0


def rows(logdir: Path) -> Iterator[PairResult]:
    """Yields one row for each pair about time with both variants recorded."""
    index: dict[str, Any] = read_index(logdir)["pairs"]
    for name, pair in PAIRS.items():
        variants = index.get(name, {})
        if pair.memory or not {"slow", "fixed"} <= variants.keys():
            continue
        slow, fixed = (
            diagnose(str(logdir / name / variant / variants[variant]["trace"])) for variant in ("slow", "fixed")
        )
        before, after = (variants[variant]["unprofiled"]["ns_per_step"] for variant in ("slow", "fixed"))
        yield PairResult(pair, variants["slow"].get("device_name", ""), slow, fixed, before, after / pair.work)


def lines_of(table: Iterable[PairResult]) -> list[str]:
    """Returns the table in Markdown, and a line with the errors."""
    lines, errors = list(_HEAD), []
    for row in table:
        predicted = "none replayed" if row.predicted_ns is None else ms(row.predicted_ns)
        error = "" if row.error is None else f"{row.error:+.0%}"
        errors += [abs(row.error)] if row.error is not None else []
        cells = (row.pair.name, row.device, row.pair.expected, _verdict(row.slow), _verdict(row.fixed))
        lines.append(f"| {' | '.join(cells)} | {ms(row.before_ns)} | {predicted} | {ms(row.after_ns)} | {error} |")
    if errors:
        lines += [
            "",
            f"Errors of {len(errors)} predictions: median {statistics.median(errors):.0%}, worst {max(errors):.0%}.",
        ]
    return lines


def simulated_table(logdir: Path) -> Iterator[str]:
    """Yields the table of the simulated recordings of one GPU: what is predicted, and what the simulator takes then."""
    folders = [(name, logdir / SIMULATED.name / name) for name in SITUATIONS]
    known = [(name, folder) for name, folder in folders if len(list(folder.glob("slow/*.json.gz"))) == 1]
    if known:
        yield "| simulated problem | on | verdict, slow | gain predicted | gain simulated |"
        yield "|---|---|---|---|---|"
    for name, folder in known:
        slow, fixed = (diagnose(str(next((folder / variant).glob("*.json.gz")))) for variant in ("slow", "fixed"))
        gain = next((finding.speedup for finding in slow.findings if finding.cause == name), None)
        predicted = "" if gain is None else f"{gain.expected:.2f} ({gain.low:.2f} to {gain.high:.2f})"
        simulated = slow.window.step_ns.mean / fixed.window.step_ns.mean
        yield f"| {name} | {slow.device.name} | {_verdict(slow)} | {predicted} | {simulated:.2f} |"


def _verdict(report: Report) -> str:
    if not report.HasField("verdict"):
        return report.health.status
    return f"{report.verdict.regime} {report.verdict.share:.0%} ({report.verdict.severity})"
