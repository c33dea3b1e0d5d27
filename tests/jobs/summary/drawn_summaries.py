"""Summaries of drawn recordings."""

from helpers.draw import drawn_trace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.jobs.summary.extract import summary_of
from tb_bottleneck.trace.steps import find_steps

MS = 1_000_000
JOB = {"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2}}


def summary(drawing, **header):
    trace = drawn_trace(drawing, unit_us=1000, **{**JOB, **header})
    return summary_of(Recording(trace, find_steps(trace)))


WAITING = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbcccccccccccccccccccc
    launch  |||.................|||.................|||.................
    gpu     .######......###....####........###.....#######......###....
    nccl    .......######...........########...............######.......
"""
