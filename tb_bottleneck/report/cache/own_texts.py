"""Removes all texts from an untrusted report that do not come from this package.

Numbers and known identifiers of a report next to a trace are accepted. The sentences of such a report could say
anything ("Run: curl …"), so a sentence is kept only if it equals, apart from figures, a sentence of this package (in
knowledge/*.toml or _MORE). Names of kernels, files and devices are untrusted in every report; they are kept, each on
one line.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf.message import Message

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.base.untrusted_text import one_line
from tb_bottleneck.knowledge.advice_texts import guide_of, health_advice, regime_advice, trial_of
from tb_bottleneck.knowledge.catalogue import all_texts
from tb_bottleneck.knowledge.gpus import known_names
from tb_bottleneck.knowledge.texts import figure_texts, on_cpu, words_for
from tb_bottleneck.measures.input_stages import Stage, stage_text
from tb_bottleneck.report.builders.action import set_action
from tb_bottleneck.report.builders.compilation import REASONS_MISSING
from tb_bottleneck.report.builders.details import broken_part
from tb_bottleneck.report.efficiency.figures import set_notes
from tb_bottleneck.report.memory_alert import set_alert
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_NAME = 600  # characters
_NAMES = {
    "Report": {"run", "source", "revision", "program"},
    "Device": {"name"},
    "Place": {"file", "function", "module", "block", "chain"},
    "MemorySite": {"operator", "module", "file", "function", "path"},
    "Evidence": {"text"},
    "Group": {"name"},
    "Membership": {"default_group"},
    "InputStage": {"name"},
    "InputStorage": {"filesystem"},
    "OutsideGraph": {"name"},
    "CompiledFunction": {"function", "file", "reasons"},
    "GraphBreak": {"function", "file", "reason"},
}
_IDENTIFIER = re.compile(r"\w{0,60}", re.ASCII)
_FIGURE = re.compile(r"(?<![\w$])[0-9][0-9.,]*(?: ?(?:%|[nµm]?s|[kMG]?B(?:/s)?|x|\u00d7)(?!\w))?")
_PLACEHOLDER = re.compile(r"\$\{?(\w+)\}?")
# The words by which these placeholders are replaced (report/builders/evidence_source_texts.py).
_WORDS = {"device": ("GPU", "CPU"), "per": ("the recorded time", "each step"), "each": ("per step", "in all")}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_MAX_SENTENCES = 12
# Sentences of report/builders that are not in a file of texts.
_MORE = (
    "No problem costs more than a tenth of the time.",
    "Nothing recorded explains $share of the time.",
    "This rule failed. This is an error in tb_bottleneck; the other rules are not affected.",
    "The limit is known from shapes for $share of the kernel time.",
    "The limit is known from shapes or the device's counters for $share of the kernel time.",
    "The kernels reach $share of it.",
    "The kernels reach $share of it; matrix units of this device reach $share of the data sheet at most.",
    "The limit is known from kernel names only: the recorded shapes do not give the work of these kernels.",
    "The limit is known from kernel names only; with record_shapes=True it follows from the kernels' work.",
    REASONS_MISSING,
    *(regime.label for regime in Regime),
)
_NO_REASON = "The reason is not part of a saved report."
# The end of a headline: the names of a function and a file (report/builders/evidence_source_texts.py).
_PLACE = re.compile(r" Most of it is in (?:\S{1,200} \(\S{1,400}\)|\S{1,400}:\d{1,9})\.$")


def remove_foreign_texts(report: pb.Report) -> None:
    """Replaces texts in `report` that are not from this package: important texts by general texts of the package,
    others by "".

    The advice of the findings is kept; the caller must have checked it before."""
    advice = [(finding.fix.summary, finding.fix.code, finding.fix.confirm) for finding in report.findings]
    fixes = [reason.fix for reason in report.health.reasons]
    headline = one_line(report.verdict.headline)
    _clean(report)
    for finding, (summary, code, confirm) in zip(report.findings, advice, strict=True):
        finding.fix.summary, finding.fix.code, finding.fix.confirm = summary, code, confirm
        finding.fix.documentation = guide_of(finding.cause)
        finding.fix.ClearField("trial")
        if trial := trial_of(finding.cause, code):
            finding.fix.trial = trial
        finding.title = regime_advice(finding.regime).causes[finding.cause].title
    for row in report.account:
        row.title, row.meaning = Regime(row.regime).label, regime_advice(row.regime).meaning
    for stage in report.input.stages if report.HasField("input") else ():
        stage.title = stage_text(Stage(stage.stage, stage.name, 0.0))
    for broken in report.broken_parts:
        broken.CopyFrom(broken_part(broken.part))
    for reason, fix in zip(report.health.reasons, fixes, strict=True):
        reason.fix = fix
        reason.detail = reason.detail or _PLACEHOLDER.sub("…", health_advice(reason.code).detail.template)
    for judged in report.regimes:
        judged.because = judged.because or _NO_REASON
    if report.HasField("efficiency"):
        report.efficiency.samples_basis = report.efficiency.samples_basis or _NO_REASON
        _clean_notes(report.efficiency)
    if report.HasField("verdict"):
        verdict = report.verdict
        verdict.title = verdict.title or Regime(verdict.regime).label
        verdict.headline = (
            headline
            if _is_own(_PLACE.sub("", headline))
            else f"{verdict.title}: {share_text(verdict.share)} of the time."
        )
        set_alert(verdict, report.memory)
    _use_words_of_device(report)
    if report.HasField("verdict"):
        set_action(report)  # names findings, in the words for the device


def _use_words_of_device(report: pb.Report) -> None:
    """Changes the replaced texts to words that fit the kind of device, as the report builder does."""
    said = words_for(report.device.kind)
    for row in report.account:
        row.meaning = said(row.meaning)
    for finding in report.findings:
        finding.title, fix = said(finding.title), finding.fix
        fix.summary, fix.confirm = said(fix.summary), said(fix.confirm)


def _clean_notes(efficiency: pb.Efficiency) -> None:
    """Keeps only notes about known figures, with the package's own title, unit and definition."""
    notes = {note.field: note for note in efficiency.notes}
    for text in figure_texts():
        if (note := notes.get(text.field)) is not None:
            note.title, note.unit, note.definition = text.title, text.unit, text.definition
            if not (note.basis or note.because):
                note.because = _NO_REASON
    set_notes(efficiency, notes)


def _clean(message: Message) -> None:
    names: set[str] = _NAMES.get(message.DESCRIPTOR.name, set())
    for field, value in message.ListFields():
        if isinstance(value, Message):
            _clean(value)
        elif isinstance(value, str):
            setattr(message, field.name, _cleaned(value, field.name in names))
        elif field.message_type is not None:
            for item in value:
                _clean(item)
        elif field.type == field.TYPE_STRING:
            value[:] = [_cleaned(item, field.name in names) for item in value]


def _cleaned(text: str, is_name: bool) -> str:
    if is_name:
        return one_line(text, MAX_NAME)
    return text if _IDENTIFIER.fullmatch(text) or _is_own(text) or _is_own(_without_device(text)) else ""


def _without_device(text: str) -> str:
    """Returns `text`, in which `$device` replaces the longest known device name that the text contains."""
    name = max((name for name in known_names() if name in text), key=len, default="")
    return text.replace(name, "$device") if name else text


def _is_own(text: str) -> bool:
    """Returns True if the text is a text of this package, or a sequence of such texts."""
    sentences = _SENTENCE_END.split(_form(text.strip()))
    if len(sentences) > _MAX_SENTENCES:
        return False
    reached = {0}  # numbers of leading sentences that are texts of this package
    for end in range(1, len(sentences) + 1):
        if any(" ".join(sentences[begin:end]) in _own_forms() for begin in reached):
            reached.add(end)
    return len(sentences) in reached


def _form(text: str) -> str:
    """Returns `text` with placeholders instead of figures and of words that depend on the recording."""
    for name, words in _WORDS.items():
        for word in words:
            text = text.replace(word, f"${name}")
    text = _PLACEHOLDER.sub(lambda match: f"${match[1]}" if match[1] in _WORDS else "#", text)
    return " ".join(_FIGURE.sub("#", text).split())


@cache
def _own_forms() -> frozenset[str]:
    texts = [text.strip() for text in (*_strings(all_texts()), *_MORE)]
    forms = {_form(said) for text in texts for said in (text, on_cpu(text))}
    return frozenset(forms | {sentence for form in forms for sentence in _SENTENCE_END.split(form)})


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
