"""Tests of the short form of a report."""

import pytest

from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema import bottleneck_pb2 as pb


@pytest.mark.parametrize(
    ("unprofiled", "shown"),
    [(None, 90.0), (pb.Unprofiled(step_ns=60), 60.0), (pb.Unprofiled(step_ns=60, step_times_ns=[60, 60, 90]), 70.0)],
)
def test_the_step_time_is_the_one_without_the_profiler(unprofiled, shown):
    window = pb.Window(steps=3, step_ns=pb.Spread(median=80, mean=90))
    assert Digest.of(pb.Report(window=window, unprofiled=unprofiled)).step_ns == shown
