"""Builds a report, once, from facts and judgements. Traces and telemetry use the same steps, with different texts.

Each step is a pure function: it takes the facts and the parts of the report that earlier steps made, and returns
further parts. `STEPS` lists them in their order. Nothing changes a report afterwards; what joins reports makes new
ones.
"""

from collections.abc import Callable, Mapping, Sequence

from tb_bottleneck.attribution.owned_spans import Account
from tb_bottleneck.base.errors import BottleneckError, Inaccessible, NotFound, StillGrowing
from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import bytes_text, duration_text, share_text
from tb_bottleneck.bottlenecks.plan import Prediction
from tb_bottleneck.knowledge.health_texts import health_advice
from tb_bottleneck.measures.efficiency.utilisation import Utilisation
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.report.builders.action import ordered_findings, verdict_action
from tb_bottleneck.report.builders.details import broken_part
from tb_bottleneck.report.builders.evidence_source_texts import Context, Places, SourceTexts, for_program
from tb_bottleneck.report.builders.findings import Diagnosis, DiagnosisWriter, causes_by_cost
from tb_bottleneck.report.builders.gains import NotPredicted, plan_rows, replay_check
from tb_bottleneck.report.builders.recording_description import Origin, Window
from tb_bottleneck.report.efficiency.figures import efficiency_of, with_rates
from tb_bottleneck.report.memory_alert import alert_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.version import SCHEMA


class ReportIdentity(Record, frozen=True):
    """The recording that a report is about."""

    run: str
    source: str
    evidence_source: str  # trace | telemetry


class Details(Record, frozen=True):
    """Parts of the report besides the verdicts. A part is None if nothing is known about it."""

    input: pb.InputPipeline | None = None
    compilation: pb.Compilation | None = None
    graphs: pb.GraphReplays | None = None
    run_time: pb.RunTime | None = None
    operators: Sequence[pb.OperatorCount] | None = None
    step_parts: Sequence[pb.StepPart] | None = None


class Phase(Record, frozen=True):
    """A time interval of a run in which one regime is dominant: [begin, end) in ns since 1970.

    `share` is the mean fraction (0 to 1) of the phase's time that the regime costs."""

    begin: int
    end: int
    regime: Regime
    share: float
    severity: str


class Facts(Record, frozen=True):
    """What a report is built from. Inputs that are None were not computed, and their parts of the report are absent.

    `defects` are the defects of the recording. `prediction` is NotPredicted if the replay is not possible, None if
    nothing was replayed. `places` has the places in the user's program by regime and cause. `account` is the time per
    regime. If `latest_phase_only` is True, `window`, `account` and `diagnosis` are only about the last of `phases`.
    `headroom` returns the possible gains that are no findings of a report that has all other parts. `broken` returns
    the names of the parts that could not be built; it is called last."""

    identity: ReportIdentity
    texts: SourceTexts
    origin: Origin
    defects: Sequence[Defect]
    window: Window | None = None
    account: Account | None = None
    diagnosis: Diagnosis | None = None
    prediction: Prediction | NotPredicted | None = None
    places: Places | None = None
    phases: Sequence[Phase] = ()
    latest_phase_only: bool = False
    membership: pb.Membership | None = None
    memory: pb.Memory | None = None
    details: Details | None = None
    efficiency: Utilisation | None = None
    unprofiled: pb.Unprofiled | None = None
    headroom: Callable[[pb.Report], Sequence[pb.Headroom]] | None = None
    broken: Callable[[], Sequence[str]] | None = None


# The health reason by the type of the error. Every other error has the reason `unreadable`: the content is not as
# expected.
_REASONS = {StillGrowing: "growing", Inaccessible: "inaccessible", NotFound: "inaccessible"}


def refused_report(identity: ReportIdentity, error: BottleneckError) -> pb.Report:
    """Returns the report of a file that the reader refused with `error`."""
    return unreadable_report(identity, _REASONS.get(type(error), "unreadable"), str(error))


def unreadable_report(identity: ReportIdentity, code: str, error: str) -> pb.Report:
    """Returns the report of a file that could not be read or judged. `code` is the health reason, `error` its text."""
    reason = _reason(code, {"error": error, "kind": identity.evidence_source})
    return _report(identity, health=pb.Health(status="unreadable", reasons=[reason]))


def snapshot_report(identity: ReportIdentity, device: int, memory: pb.Memory) -> pb.Report:
    """Returns the report of an allocator snapshot. It has no verdict, because a snapshot has no times. `device` is the
    index of the GPU."""
    return _report(identity, health=pb.Health(status="ok"), device=pb.Device(kind="cuda", index=device), memory=memory)


def build_report(facts: Facts) -> pb.Report:
    """Returns the report about `facts`."""
    report = pb.Report()
    for step in STEPS:
        report.MergeFrom(step(facts, report))
    return report


def _recording(facts: Facts, report: pb.Report) -> pb.Report:
    """The recording: its run, file, rank, device and health."""
    origin = facts.origin
    return _report(
        facts.identity,
        rank=origin.rank,
        world_size=origin.world_size,
        device=pb.Device(
            name=origin.device.name, kind=origin.device.kind, index=origin.device.index, count=origin.device.count
        ),
        health=_health(facts.defects),
        membership=facts.membership,
        revision=origin.revision or None,
        program=origin.program or None,
        program_file=origin.program_file or None,
    )


def _parts(facts: Facts, report: pb.Report) -> pb.Report:
    """The parts that do not depend on a verdict."""
    details = facts.details
    return pb.Report(
        phases=[_phase(phase, facts.texts) for phase in facts.phases],
        memory=None if facts.memory is None else _memory_of_program(facts.memory, facts.origin.program_file),
        unprofiled=facts.unprofiled,
        **({} if details is None else {name: getattr(details, name) for name in Details.__struct_fields__}),
    )


def _memory_of_program(memory: pb.Memory, program_file: str) -> pb.Memory:
    """Returns a copy of `memory` whose commands run the program of the recording."""
    named = pb.Memory()
    named.CopyFrom(memory)
    for finding in named.findings:
        finding.fix.code = for_program(finding.fix.code, program_file)
    return named


def _window(facts: Facts, report: pb.Report) -> pb.Report:
    window, account = facts.window, facts.account
    if window is None:
        return pb.Report()
    message = pb.Window(
        steps=window.steps,
        basis=window.basis,
        begin_ns=float(window.begin),
        end_ns=float(window.end),
        step_times_ns=window.step_times,
        recorded_step_ns=window.recorded_mean,
        correction=window.correction or None,
        mean_error=window.mean_error,
    )
    if window.spread is not None:
        p10, median, p90 = window.spread
        mean = account.window / max(window.steps, 1) if account is not None else median
        message.step_ns.CopyFrom(pb.Spread(median=median, p10=p10, p90=p90, mean=mean))
    return pb.Report(window=message)


def _efficiency(facts: Facts, report: pb.Report) -> pb.Report:
    if facts.window is None or facts.efficiency is None:
        return pb.Report()
    efficiency = efficiency_of(facts.efficiency, report.window)
    return pb.Report(efficiency=with_rates(efficiency, report))


def _account(facts: Facts, report: pb.Report) -> pb.Report:
    """The time per regime, with one row for each regime in the order of REGIMES."""
    account, texts = facts.account, facts.texts
    if facts.window is None or account is None:
        return pb.Report()
    context = _context(facts)
    rows = [
        pb.AccountRow(
            regime=regime,
            share=account.share(regime),
            ns_per_step=account.ns[regime] / max(facts.window.steps, 1),
            title=texts.label(regime),
            meaning=context.said(texts.meaning(regime, context.device)),
        )
        for regime in REGIMES
    ]
    return pb.Report(account=rows)


def _judgements(facts: Facts, report: pb.Report) -> pb.Report:
    """The judgement of each regime, the findings with the one that the action is about first, and the plan."""
    writer, prediction = _writer(facts), facts.prediction
    if writer is None:
        return pb.Report()
    draft = pb.Report(
        regimes=map(writer.regime_verdict, writer.diagnosis.verdicts),
        findings=[writer.finding(*named) for named in causes_by_cost(writer.diagnosis, facts.texts)],
        plan=plan_rows(prediction) if isinstance(prediction, Prediction) else (),
        replay=replay_check(prediction) if prediction is not None else None,
        verdict=pb.Verdict(regime=writer.diagnosis.conclusion.regime),
    )
    ordered = ordered_findings(draft)
    del draft.findings[:]
    draft.findings.extend(ordered)
    return draft


def _verdict(facts: Facts, report: pb.Report) -> pb.Report:
    writer = _writer(facts)
    return pb.Report() if writer is None else pb.Report(verdict=writer.verdict(report, facts.latest_phase_only))


def _action(facts: Facts, report: pb.Report) -> pb.Report:
    """The first change, and the most severe memory problem, which the verdict shows too."""
    if facts.diagnosis is None:
        return pb.Report()
    verdict = verdict_action(report)
    alert = alert_of(report.verdict.severity, report.memory)
    verdict.MergeFrom(pb.Verdict(memory_alert=alert))
    return pb.Report(verdict=verdict)


def _headroom(facts: Facts, report: pb.Report) -> pb.Report:
    return pb.Report(headroom=facts.headroom(report) if facts.headroom is not None else ())


def _broken_parts(facts: Facts, report: pb.Report) -> pb.Report:
    return pb.Report(broken_parts=map(broken_part, facts.broken() if facts.broken is not None else ()))


STEPS: tuple[Callable[[Facts, pb.Report], pb.Report], ...] = (
    _recording,
    _parts,
    _window,
    _efficiency,
    _account,
    _judgements,
    _verdict,
    _action,
    _headroom,
    _broken_parts,
)
"""The steps that build a report, in their order."""


def _context(facts: Facts) -> Context:
    assert facts.window is not None
    origin = facts.origin
    return Context(origin.device.kind, origin.device.name, facts.window, origin.on_windows, origin.program_file)


def _writer(facts: Facts) -> DiagnosisWriter | None:
    if facts.window is None or facts.diagnosis is None:
        return None
    return DiagnosisWriter(facts.diagnosis, facts.texts, _context(facts), facts.prediction, facts.places or {})


def _report(identity: ReportIdentity, **parts: object) -> pb.Report:
    source = identity.evidence_source
    names = {"run": identity.run, "source": identity.source, "witness": source, "evidence_source": source}
    return pb.Report(schema=SCHEMA, **names, **parts)  # type: ignore[arg-type]


def _health(defects: Sequence[Defect]) -> pb.Health:
    """Returns the health of a recording: `incomplete` if a defect is fatal, `degraded` if there are other defects, `ok`
    without defects."""
    fatal = any(defect.fatal for defect in defects)
    status = "incomplete" if fatal else "degraded" if defects else "ok"
    return pb.Health(status=status, reasons=[_reason(defect.code, defect.facts) for defect in defects])


def _reason(code: str, facts: Mapping[str, float | str]) -> pb.HealthReason:
    """Returns the health reason of the defect `code`: its text with `facts` filled in, and its fix."""
    advice = health_advice(code)
    values = {name: _fact_text(name, value) for name, value in facts.items()}
    kind = values.get("kind", "")
    none = advice.none_if.get(kind, "")
    detail = f"{advice.detail.safe_substitute(values)} {none}".rstrip()
    fix = "" if none else advice.fix_if.get(kind, advice.fix)
    return pb.HealthReason(code=code, detail=detail, fix=fix)


def _fact_text(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    if name == "share":
        return share_text(value)
    if name in ("pause", "recorded", "time"):
        return duration_text(value)
    return bytes_text(value) if name == "bytes" else f"{value:,.0f}"


def _phase(phase: Phase, texts: SourceTexts) -> pb.Phase:
    return pb.Phase(
        begin_ns=float(phase.begin),
        end_ns=float(phase.end),
        regime=phase.regime,
        share=phase.share,
        severity=phase.severity,
        title=texts.title(phase.regime, phase.severity),
    )
