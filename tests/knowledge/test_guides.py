"""Each cause has one link to official documentation."""

from urllib.parse import urlsplit

import pytest

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.texts import guide_of, regime_advice, telemetry_advice
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.knowledge.texts import job_texts

HOSTS = {
    "docs.kernel.org", "docs.nvidia.com", "docs.python.org", "docs.pytorch.org", "numpy.org", "pytorch.org",
}  # fmt: skip
CAUSES = {
    *(cause for regime in Regime for cause in regime_advice(regime).causes),
    *telemetry_advice().causes,
    *job_texts().causes,
    *load("memory.toml")["finding"],
}
LISTED = [cause for guide in load("guides.toml")["guide"] for cause in guide["causes"]]


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_every_cause_has_an_official_guide(cause: str) -> None:
    url = urlsplit(guide_of(cause))
    assert (url.scheme, url.query, url.fragment) == ("https", "", "")
    assert url.hostname in HOSTS


def test_no_cause_is_listed_twice_or_unknown() -> None:
    assert len(set(LISTED)) == len(LISTED)
    assert set(LISTED) <= {*job_texts().causes, *load("memory.toml")["finding"]}


def test_a_cause_of_nobody_has_none() -> None:
    assert guide_of("no such cause") == ""
