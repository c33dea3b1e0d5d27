"""The messages that the routes send, made of what the logdir holds and how far the analyses are. No HTTP here."""

from tb_bottleneck.plugin.analyses import Analyses
from tb_bottleneck.plugin.runs import Look, id_of
from tb_bottleneck.schema.bottleneck_pb2 import ReportAnswer, RunEntry, RunList
from tb_bottleneck.sources.logdir import Recording


def run_list(logdir: str, look: Look | None, analyses: Analyses) -> RunList:
    """Every recording with its state; `look` is None while the first look at the logdir is not over."""
    if look is None:
        return RunList(state="scanning", logdir=logdir)
    entries = [_entry(recording, analyses) for recording in look.listing.recordings]
    return RunList(state="ready", logdir=logdir, runs=entries, problems=look.listing.problems)


def report_answer(recording: Recording, analyses: Analyses) -> ReportAnswer:
    """The recording's report, or how far it is; asking puts it at the head of the queue."""
    state, report = analyses.ask(recording)
    return ReportAnswer(id=id_of(recording), state=state.name, progress=state.progress, report=report)


def _entry(recording: Recording, analyses: Analyses) -> RunEntry:
    state, digest = analyses.look(recording)
    entry = RunEntry(
        id=id_of(recording),
        run=recording.run,
        source=recording.source,
        size_bytes=recording.size,
        state=state.name,
        progress=state.progress,
    )
    if digest is not None:
        entry.MergeFrom(
            RunEntry(health=digest.health, reason=digest.reason, verdict=digest.verdict, step_ns=digest.step_ns)
        )
    return entry
