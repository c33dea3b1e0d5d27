"""Decides which evidence source of one training to trust if its trace and its telemetry name different problems.

A trace shows everything in a few steps, which the profiler slows down. Telemetry shows all steps from outside, and the
state of the machine: cores, clocks, worker processes.
"""

from dataclasses import dataclass

from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.rule_types import CLEAR, COMPARABLE, FIRES, MACHINE_CAUSES, WORTH_RECOVERING
from tb_bottleneck.bottlenecks.texts import telemetry_advice
from tb_bottleneck.report.digest import step_ns_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

OUTSIDE_A_TRACE = frozenset(
    {
        "contended_cores",
        "cpu_quota",
        "degraded_link",
        "growing_steps",
        "other_tenant",
        "power_brake",
        "power_cap",
        "restarted_workers",
        "slow_slot",
        "slow_storage",
        "thermal_throttle",
        "too_few_cores",
    }
)
"""Causes in the machine, in worker processes or in the run as a whole. The monitor can see these causes; a trace of a
few steps cannot."""

SEEN_ON_THE_THREAD = frozenset({"iterator_per_batch", "samples_one_by_one", "slow_sampler", "tensors_from_lists"})
"""Causes of waits for batches that the Python frames of a trace show. The state of workers, cores and storage, from
which telemetry names a cause, does not tell them apart."""

MIN_STEPS_OF_RUN = 20
REPRESENTS = 0.5
"""If the steps of a trace take less than this part of the run's mean step time, the trace shows less than half of the
run's time: the remaining time is in steps that the trace does not contain. Chosen."""
SLOWER = 1.5
"""If the steps of a trace take at least this many times as long as the mean step of the run, the trace does not decide.
Chosen: the steps of one part of a run differ by less."""
DISTURBED = 2.5
"""The same factor if only the recorded steps are slow, and the profiler does not explain it. Chosen: of fifty
recordings, the profiler's time that was not removed made the steps of one in fifty longer by more."""
ALIKE = 0.8
"""If the steps of a trace take at least this part of the run's mean step time, they count as like the other steps of
the run. Chosen."""

TIMED_IN_THE_RUN = frozenset({Regime.INPUT, Regime.INTERRUPTION})
"""Regimes whose time the monitor measures in each step of the run. After a profiler has started, which stops the loop,
the queue of the loader is full: the first recorded steps wait less than the others."""
RUN_DIFFERS = 1.5
"""If the trace and the run name the same regime, and the gains that its two shares allow differ by at least this
factor, the run decides. Chosen: two recordings of one training differ by less."""

_SEVERITIES = ("critical", "warning", "info", "none")


@dataclass(frozen=True)
class Trust:
    """The evidence source to trust, `trace` or `telemetry`, and the reason as a sentence for users. `doubtful` is True
    if even this source allows only a low confidence."""

    source: str
    because: str
    doubtful: bool = False


def trust_of(trace: pb.Report, telemetry: pb.Report) -> Trust:
    """Returns the evidence source to trust for the verdict of a training. Both reports have a verdict."""
    source, reason = _choice(trace, telemetry)
    sentence = (
        telemetry_advice()
        .trust[reason]
        .safe_substitute(
            regime=trace.verdict.title or trace.verdict.regime,
            other=telemetry.verdict.title or telemetry.verdict.regime,
            share=share_text(_share(telemetry, trace.verdict.regime)),
            represented=share_text(represented_share(trace, telemetry)),
            recorded=f"{trace.window.steps:,}",
            steps=f"{telemetry.window.steps:,}",
        )
    )
    return Trust(source, sentence, doubtful=reason == "slower_and_unknown")


def represented_share(trace: pb.Report, telemetry: pb.Report) -> float:
    """Returns the ratio of the step time of the trace to the mean step time of the run, at most 1; 1 if one of them is
    not known.

    The ratio is the share of the run's time that the steps would take if all steps were as long as those of the trace.
    If the profiler's time was removed from the steps of the trace, the mean of these steps is used, because the steps
    before the trace may have interruptions that the trace does not have. The ratio is multiplied by (1 - share of the
    time in which the run compiles functions)."""
    corrected = trace.window.HasField("recorded_step_ns")
    step = trace.window.step_ns.mean if corrected else step_ns_of(trace)
    run = telemetry.window.step_ns.mean
    if trace.window.basis == "whole" or not step or run <= 0 or telemetry.window.steps < MIN_STEPS_OF_RUN:
        return 1.0
    compiled = sum(finding.cost_share for finding in telemetry.findings if finding.cause == "compilation")
    return min(step / run, 1.0) * (1.0 - min(compiled, 1.0))


def _is_slower(trace: pb.Report, telemetry: pb.Report) -> bool:
    """Returns True if the steps of the trace, and those directly before it without the profiler, took at least SLOWER
    times as long as the mean step of the run: they belong to a part of the run that is over. Also returns True if only
    the steps of the trace were slow, by DISTURBED."""
    recorded, before, run = trace.window.step_ns.mean, trace.unprofiled.step_ns, telemetry.window.step_ns.mean
    known = before > 0 and run > 0 and telemetry.window.steps >= MIN_STEPS_OF_RUN
    return known and (min(recorded, before) >= SLOWER * run or recorded >= DISTURBED * max(run, before))


def _choice(trace: pb.Report, telemetry: pb.Report) -> tuple[str, str]:
    """Returns the evidence source to trust, "trace" or "telemetry", and the key of the reason."""
    seen, said = trace.verdict, telemetry.verdict
    names_problem = said.severity != "none"
    if represented_share(trace, telemetry) < REPRESENTS:
        return "telemetry", "not_representative"
    if _is_slower(trace, telemetry):
        unknown = said.regime == Regime.UNEXPLAINED and not names_problem
        return ("trace", "slower_and_unknown") if unknown else ("telemetry", "slower_than_run")
    cause = telemetry.findings[0].cause if telemetry.findings else ""
    if names_problem and cause in MACHINE_CAUSES and _program_leads(trace, telemetry):
        return "trace", "program_first"
    if seen.regime == said.regime and any(found.cause in SEEN_ON_THE_THREAD for found in trace.findings[:1]):
        return "trace", "agree"
    if names_problem and cause in OUTSIDE_A_TRACE and not _same_cause(trace, cause):
        if _is_worse(seen, said) and (seen.confidence != "low" or said.confidence == "low"):
            return "trace", "worse_in_trace"
        return "telemetry", "outside_a_trace"
    if said.regime == Regime.UNEXPLAINED:
        return "trace", "telemetry_unknown"
    if said.regime == Regime.HOST and _has_little_python(trace, telemetry):
        return "trace", "operators_outside"
    if seen.regime == said.regime:
        return ("telemetry", "all_steps") if _run_differs(trace, telemetry) else ("trace", "agree")
    if seen.regime in DEVICE_REGIMES and said.regime in DEVICE_REGIMES:
        return "trace", "device_work"
    status = _status(telemetry, seen.regime) if seen.regime not in DEVICE_REGIMES else ""
    # A device counts as busy for telemetry while a kernel is resident, even if the host holds it up.
    idle_unseen = said.regime in DEVICE_REGIMES and seen.regime not in TIMED_IN_THE_RUN
    measured = status in (FIRES, CLEAR) and not idle_unseen
    if not names_problem:
        return ("telemetry", "not_in_all_steps") if measured else ("trace", "only_a_trace")
    if said.confidence == "low":
        return "trace", "low_confidence"
    share = seen.share * represented_share(trace, telemetry)
    if seen.severity != "none" and not measured and share >= said.share and not _is_worse(said, seen):
        return "trace", "only_a_trace"
    if _is_worse(seen, said) and (status != CLEAR or idle_unseen) and represented_share(trace, telemetry) >= ALIKE:
        return "trace", "more_to_gain"
    return "telemetry", "all_steps"


def _has_little_python(trace: pb.Report, telemetry: pb.Report) -> bool:
    """Returns True if the trace has little Python outside torch, and less than half of what telemetry takes for Python
    can be in steps that are not like those of the trace."""
    others = 1 - represented_share(trace, telemetry)
    return _status(trace, Regime.HOST) == CLEAR and others <= min(1 - ALIKE, telemetry.verdict.share / 2)


def _run_differs(trace: pb.Report, telemetry: pb.Report) -> bool:
    """Returns True if the steps of the run show another share of the verdict's regime than those of the trace."""
    seen, said = trace.verdict, telemetry.verdict
    if said.regime not in TIMED_IN_THE_RUN or said.severity == "none" or telemetry.window.steps < MIN_STEPS_OF_RUN:
        return False
    ratio = (1 - seen.share) / max(1 - said.share, 1e-3)
    return not 1 / RUN_DIFFERS < ratio < RUN_DIFFERS


def _program_leads(trace: pb.Report, telemetry: pb.Report) -> bool:
    """Returns True if the trace shows a cause in the program whose cost is nearly as large as, or larger than, the cost
    of the machine's cause in the telemetry."""
    own = max((finding.cost_share for finding in trace.findings if finding.regime == trace.verdict.regime), default=0.0)
    least = max(WORTH_RECOVERING, COMPARABLE * telemetry.findings[0].cost_share)
    return trace.verdict.severity != "none" and own >= least


def _is_worse(one: pb.Verdict, other: pb.Verdict) -> bool:
    return _SEVERITIES.index(one.severity or "none") < _SEVERITIES.index(other.severity or "none")


def _same_cause(report: pb.Report, cause: str) -> bool:
    return any(finding.cause == cause for finding in report.findings[:1])


def _status(report: pb.Report, regime: str) -> str:
    return next((verdict.status for verdict in report.regimes if verdict.regime == regime), "")


def _share(report: pb.Report, regime: str) -> float:
    return next((verdict.share for verdict in report.regimes if verdict.regime == regime), 0.0)
