"""The script that publishes the accuracy of the analysis of jobs."""

import job_accuracy


def test_the_page_has_every_cause_and_all_parts():
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
