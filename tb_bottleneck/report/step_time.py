"""The step time of a training, as lists and reports state it."""

from tb_bottleneck.schema import bottleneck_pb2 as pb


def step_ns_of(report: pb.Report) -> float | None:
    """Returns the step time in ns: without the profiler if that was measured, else as recorded. None if unknown.

    It is a mean; the median if only that was logged without the profiler. All steps of the telemetry show more of the
    run than the few before a trace, which may be at its start.
    """
    if report.HasField("unprofiled"):
        if report.unprofiled.run_step_ns > 0:
            return report.unprofiled.run_step_ns
        times = report.unprofiled.step_times_ns
        return sum(times) / len(times) if times else report.unprofiled.step_ns
    return report.window.step_ns.mean if report.window.HasField("step_ns") else None
