"""The script that publishes the accuracy of the analysis of jobs."""

import job_accuracy
import pytest


@pytest.mark.nightly
def test_the_page_has_every_cause_and_all_parts(monkeypatch):
    """One cause is judged; the answers of the others are made up, all of them right."""
    judge = job_accuracy.judged

    def judged(name, case, **options):
        if name == "slow_rank":
            return judge(name, case, **options)
        return job_accuracy.Judged(name, case, dict(case.causes), 1.5, 1.5, 1.5, 0.01)

    monkeypatch.setattr(job_accuracy, "judged", judged)
    page = "\n".join(job_accuracy.page(1, sizes={64: ("slow_link", "healthy")}))
    for name in job_accuracy.PLANTERS:
        assert f"| {name} | 1 |" in page
    for part in (
        "## Causes",
        "## Two causes at once",
        "## Replay and scenarios",
        "## Large jobs",
        "## Through trace files",
        "## Misses",
    ):
        assert part in page
