"""The answer to `ranks?id=...`: the job that a recording belongs to, from the digests of the analysed recordings."""

from tb_bottleneck.plugin.state.run_index import LogdirScan, id_of
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisQueue
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.evidence_pb2 import RankRow, RanksAnswer
from tb_bottleneck.sources.logdir import RecordingFile


def ranks_answer(recording: RecordingFile, scan: LogdirScan, analyses: AnalysisQueue) -> RanksAnswer:
    """Returns the job of this recording's run, and its ranks in order; neither if fewer than two have a digest."""
    ranks: dict[int, tuple[RecordingFile, Digest]] = {}
    for other in scan.listing.recordings:
        digest = analyses.look(other)[1] if other.run == recording.run else None
        if digest is not None and digest.rank is not None and digest.world_size > 1:
            ranks.setdefault(digest.rank, (other, digest))
    answer = RanksAnswer(id=id_of(recording))
    jobs = jobs_of(_as_report(other, digest) for other, digest in ranks.values())
    if not jobs:
        return answer
    answer.job.CopyFrom(jobs[0])
    stragglers = {straggler.rank for straggler in jobs[0].stragglers}
    for rank, (other, digest) in sorted(ranks.items()):
        answer.ranks.append(
            RankRow(
                id=id_of(other),
                source=other.source,
                rank=rank,
                step_ns=digest.step_ns,
                verdict=digest.verdict,
                account=digest.account,
                is_straggler=rank in stragglers,
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
    )
