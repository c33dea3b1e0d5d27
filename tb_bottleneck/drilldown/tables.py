"""All tables of a recording, as one message."""

from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.kernel_tables import add_kernels, add_operators
from tb_bottleneck.drilldown.roofline_chart import roofline_of
from tb_bottleneck.drilldown.step_account import add_step_account
from tb_bottleneck.drilldown.sync_and_copy_tables import add_copies, add_waits
from tb_bottleneck.schema import evidence_pb2 as pb


def tables_of(case: InspectedTrace) -> pb.Tables:
    """What ran in the judged window. Empty where nothing was recorded."""
    recording = case.recording
    if recording is None:
        return pb.Tables()
    window = recording.steps.end - recording.steps.begin
    answer = pb.Tables(window_ns=window, steps=len(recording.steps))
    add_kernels(case, recording, answer)
    add_operators(recording, answer)
    add_waits(recording, answer)
    add_copies(recording, answer)
    answer.roofline.CopyFrom(roofline_of(recording, window))
    add_step_account(case, recording, answer)
    return answer
