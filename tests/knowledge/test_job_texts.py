"""Every cause of jobs has texts, and every fact that causes give has a label."""

import re
from pathlib import Path

from simulate.jobs.cases import PLANTERS

from tb_bottleneck import jobs
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.knowledge.texts import job_texts

CAUSES = "".join(path.read_text() for path in sorted((Path(jobs.__file__).parent / "causes").glob("*.py")))


def test_all_causes_have_texts_and_are_simulated():
    assert set(job_texts().causes) == set(PLANTERS)
    for name, cause in job_texts().causes.items():
        assert cause.regime in REGIMES
        assert f'"{name}"' in CAUSES, "found by a module of causes"


def test_all_facts_have_labels():
    facts = set(re.findall(r'"(\w+)": ', CAUSES)) | set(re.findall(r'facts\["(\w+)"\]', CAUSES))
    assert facts <= set(job_texts().evidence), facts - set(job_texts().evidence)
    assert len(facts) > 10


def test_health_has_a_fix_for_every_reason():
    assert set(job_texts().health) == set(job_texts().health_fix)
