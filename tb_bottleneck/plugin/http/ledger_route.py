"""The answer to `ledger`: the fixes that reviewers stated, with their predicted and measured gains."""

from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.run_index import LogdirScan
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisState
from tb_bottleneck.review.states import by_name
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.review_pb2 import Ledger


def ledger_answer(scan: LogdirScan, recordings: RecordingRegistry) -> Ledger | AnalysisState:
    """Returns the ledger, or the progress of the first analysis that it waits for. At most 50 fixes are considered."""
    from tb_bottleneck.review.ledger import fixes_of, ledger  # imports the comparison

    fixes = fixes_of(scan.notes)
    named = by_name(scan.listing.recordings) if fixes else {}
    reports: dict[str, Report] = {}
    for name in dict.fromkeys(name for fix in fixes for name in (fix.subject, fix.fixed_in) if name in named):
        report = recordings.report(named[name])
        if isinstance(report, AnalysisState):
            return report
        reports[name] = report
    return ledger(fixes, reports.get)
