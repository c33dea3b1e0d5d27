"""The answer to `ranks?id=...`: the job that a recording belongs to, from the digests of the analysed recordings."""

from tb_bottleneck.plugin.state.run_index import LogdirScan, id_of
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisQueue
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.job_members import jobs_in
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.evidence_pb2 import RankRow, RanksAnswer
from tb_bottleneck.sources.logdir import RecordingFile


def ranks_answer(recording: RecordingFile, scan: LogdirScan, analyses: AnalysisQueue) -> RanksAnswer:
    """Returns the job of this recording, and its ranks in order; neither if fewer than two have a digest."""
    others = [(other, analyses.look(other)[1]) for other in scan.listing.recordings if other.run == recording.run]
    known = [(other, digest) for other, digest in others if digest is not None and digest.rank is not None]
    reports = [_as_report(other, digest) for other, digest in known]
    answer = RanksAnswer(id=id_of(recording))
    members = next((job for job in jobs_in(reports) if recording in (known[position][0] for position in job)), [])
    if not members:
        return answer
    answer.job.CopyFrom(jobs_of([reports[position] for position in members])[0])
    stragglers = {straggler.rank for straggler in answer.job.stragglers}
    for other, digest in (known[position] for position in members):
        answer.ranks.append(
            RankRow(
                id=id_of(other),
                source=other.source,
                rank=digest.rank,
                step_ns=digest.step_ns,
                verdict=digest.verdict,
                account=digest.account,
                is_straggler=digest.rank in stragglers,
            )
        )
    return answer


def _as_report(recording: RecordingFile, digest: Digest) -> Report:
    """Returns the parts of the report that `jobs_of` reads."""
    return Report(
        run=recording.run,
        rank=digest.rank,
        world_size=digest.world_size,
        verdict=digest.verdict,
        account=digest.account,
        membership=digest.membership,
    )
