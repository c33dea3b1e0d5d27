"""The interface for the texts of one evidence source (a trace or telemetry), and the values and places that are
inserted into the templates of texts.

Reports from traces and from telemetry share this interface. Places are places in the user's program.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from string import Template
from typing import Protocol

from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.bottlenecks.rule_types import AnyCause, AnyVerdict
from tb_bottleneck.bottlenecks.texts import CauseAdvice, EvidenceLine
from tb_bottleneck.knowledge.texts import guarded, words_for
from tb_bottleneck.measures.user_code.places import SCRIPT, Place
from tb_bottleneck.report.builders.recording_description import Window
from tb_bottleneck.schema import bottleneck_pb2 as pb

Places = Mapping[tuple[Regime, str], Sequence[Place]]
"""A dict from (regime, name of a cause) to the places of this cause, costliest first."""

# Smallest share of the cost of a cause for a line that the headline names.
MIN_HEADLINE_SHARE = 0.5


def place_rows(places: Places, regime: Regime, cause: str) -> list[pb.Place]:
    """Returns the places of a cause as messages; empty if there are none."""
    return [pb.Place(**asdict(place)) for place in places.get((regime, cause), ())]


def most_of_it(places: Places, regime: Regime, cause: str) -> str:
    """Returns a sentence about the line or function that has at least half of the cost of `cause`, a cause of `regime`;
    empty if there is none. `places` has the places in the program by regime and cause."""
    return sentence_about(places.get((regime, cause), ()))


def sentence_about(places: Iterable[Place | pb.Place]) -> str:
    """Returns a sentence about the first of `places`, which has the largest cost; empty if it has less than half of the
    cost."""
    costliest = next(iter(places), None)
    if costliest is None or not costliest.file or costliest.share < MIN_HEADLINE_SHARE:
        return ""
    line = f"{costliest.file}:{costliest.line}" if costliest.line else costliest.file
    if costliest.exact:
        return (
            f" Most of it is in {line}."
            if costliest.function == SCRIPT
            else f" Most of it is in {line} ({costliest.function})."
        )
    return f" Most of it is in {costliest.function} ({line})."


class Context(Record, frozen=True):
    """Facts about the recording that every text template may use. `device_kind` is "cpu" or the kind of an accelerator,
    `program_file` is empty if not known."""

    device_kind: str
    device_name: str
    window: Window
    on_windows: bool = False
    program_file: str = ""

    @property
    def device(self) -> str:
        """The computing device in one word: "CPU" or "GPU"."""
        return "CPU" if self.device_kind == "cpu" else "GPU"

    def said(self, text: str) -> str:
        """Returns `text`, a text of this package, with its words adapted to the kind of device."""
        return words_for(self.device_kind)(text)

    @property
    def each(self) -> str:
        """The words that say what an amount refers to: "per step", or "in all" if the recording is not divided into
        steps."""
        return "in all" if self.window.basis == "whole" else "per step"

    @property
    def code_values(self) -> dict[str, str]:
        """The values of placeholders in advised code that depend on the device and the operating system.

        A line of code with the placeholder `gpu` is for GPUs only, a line with `windows` for Windows only, and a line
        with `triton` for other systems only.
        """
        system = {"windows": "Windows"} if self.on_windows else {"triton": "Triton"}
        device = {"pinned": ""} if self.device_kind == "cpu" else {"pinned": ", pin_memory=True", "gpu": "GPU"}
        return system | device

    def values(self, share: float) -> dict[str, str]:
        """Returns the values of the placeholders `share`, `device`, `idle_device` and `per` for a template. `share` (0
        to 1) is a fraction of the judged time."""
        return {
            "share": share_text(share),
            "device": self.device,
            "idle_device": self.device_name or "A GPU",
            "per": "the recorded time" if self.window.basis == "whole" else "each step",
        }


class SourceTexts(Protocol):
    """The texts of reports from one evidence source: a trace or telemetry."""

    @property
    def rule_failed(self) -> str:
        """The sentence about a rule that raised an error."""
        ...

    def label(self, regime: Regime) -> str:
        """Returns the name of `regime` in the account (the time per regime)."""
        ...

    def meaning(self, regime: Regime, device: str) -> str:
        """Returns sentences that say what happens in the time of a regime. `device` is GPU or CPU."""
        ...

    def title(self, regime: Regime, severity: str) -> str:
        """Returns the name of `regime` in a verdict with this severity."""
        ...

    def headline(self, conclusion: Conclusion, verdicts: Sequence[AnyVerdict], context: Context) -> str:
        """Returns the headline of the report for `conclusion`, which was drawn from the verdicts of all regimes."""
        ...

    def latest_phase(self, headline: str, length_ns: int) -> str:
        """Returns `headline`, changed for a report about only the last phase of a run. The phase lasts `length_ns`
        (ns)."""
        ...

    def because(self, verdict: AnyVerdict) -> Template:
        """Returns the template of a sentence that says why `verdict` judges its regime as it does."""
        ...

    def because_values(self, verdict: AnyVerdict) -> dict[str, str]:
        """Returns the values for those placeholders in the template `because` that Context.values does not provide."""
        ...

    def advice(self, regime: Regime, cause: str) -> CauseAdvice:
        """Returns the texts of a cause of this regime: its title and what to do about it."""
        ...

    def evidence_lines(self, regime: Regime, cause: AnyCause) -> Sequence[EvidenceLine]:
        """Returns the lines of evidence to show for a cause."""
        ...


_UNFILLED = re.compile(r"\$\w+")


ANY_PROGRAM = "train.py"
"""The program in commands of our texts."""


def for_program(text: str, file: str) -> str:
    """Returns `text`, in which commands run ANY_PROGRAM, with commands that run `file`; `text` if `file` is empty."""
    return text.replace(ANY_PROGRAM, shlex.quote(file)) if file else text


def fitted_code(code: Template, values: Mapping[str, str]) -> str:
    """Returns the advised code with `values` filled in.

    A line with a placeholder that has no value is left out. If no line of code would remain, all lines are kept with
    "..." for these placeholders. On Windows, code that starts workers is guarded."""
    lines = code.safe_substitute(values).splitlines()
    fitting = [line for line in lines if not _UNFILLED.search(line)]
    has_code = any(line.strip() and not line.lstrip().startswith("#") for line in fitting)
    shown = fitting if has_code else [_UNFILLED.sub("...", line) for line in lines]
    return "\n".join(guarded(shown) if "windows" in values else shown)


_FORMATS: dict[str, Callable[[Measure], str]] = {
    "count": lambda measure: f"{measure.value:,.0f}",
    "share": lambda measure: share_text(measure.value),
    "text": lambda measure: measure.text,
}


def figures(facts: Mapping[str, Measure | Missing]) -> dict[str, str]:
    """Returns a dict for templates: name -> text. The dict contains the entries of `facts` that are counts, shares or
    texts."""
    known = {name: fact for name, fact in facts.items() if isinstance(fact, Measure) and fact.unit in _FORMATS}
    return {name: _FORMATS[fact.unit](fact) for name, fact in known.items()}
