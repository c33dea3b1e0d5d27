"""The arguments of collectives are kept exactly, and wrong ones are left out."""

import json

import pytest

from tb_bottleneck.trace.columns import messages
from tb_bottleneck.trace.columns.messages import NO_MESSAGE, Message
from tb_bottleneck.trace.trace import load

ARGS = {
    "Collective name": "all_to_allv", "In msg nelems": 8, "Out msg nelems": 12, "Group size": 2, "dtype": "BFloat16",
    "In split size": "[4, 4]", "Out split size": "[6, 6]", "Process Group Name": "3",
    "Process Group Description": "mesh_ep", "Process Group Ranks": "[0, 4]", "Src Rank": 0, "Dst Rank": 4,
    "Seq": 17, "Comms Id": 2**64 - 5,
}  # fmt: skip


def recorded(tmp_path, *all_args, name="record_param_comms", category="cpu_op"):
    path = tmp_path / "t.json"
    rows = [
        {"ph": "X", "cat": category, "name": name, "ts": at, "dur": 1, "args": args} for at, args in enumerate(all_args)
    ]
    path.write_text(json.dumps({"traceEvents": rows}))
    trace = load(str(path))
    return [trace.messages[row] for row in trace.events.message.tolist()], trace


def test_all_arguments_are_kept_exactly(tmp_path):
    (message,), _ = recorded(tmp_path, ARGS)
    assert message == Message(
        "all_to_allv", "BFloat16", 8, 12, "3", "mesh_ep", "[0, 4]", 2, 17, 2**64 - 5, 0, 4, "[4, 4]", "[6, 6]"
    )


def test_equal_arguments_are_kept_once(tmp_path):
    found, trace = recorded(tmp_path, ARGS, ARGS, {**ARGS, "Seq": 18})
    assert [message.sequence for message in found] == [17, 17, 18]
    assert len(trace.messages) == 3


def test_other_operators_have_none(tmp_path):
    assert recorded(tmp_path, ARGS, name="aten::mm")[0] == [NO_MESSAGE]
    assert recorded(tmp_path, {})[0] == [NO_MESSAGE]


@pytest.mark.parametrize("wrong", [None, True, -1, 1.5, "x", [], {}, 2**64, 10**30], ids=repr)
def test_values_of_wrong_types_are_left_out(tmp_path, wrong):
    keys = [key for key in ARGS if not key.endswith("nelems")]  # sizes are numbers or text to the decoder
    (message,), _ = recorded(tmp_path, {**dict.fromkeys(keys, wrong), "Collective name": "allreduce"})
    text = wrong if isinstance(wrong, str) else ""
    assert message == Message(
        "allreduce", text, group=text, description=text, ranks=text, split_in=text, split_out=text
    )


def test_their_number_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "MAX_MESSAGES", 3)
    found, trace = recorded(tmp_path, *({**ARGS, "Seq": number} for number in range(5)))
    assert [message.sequence for message in found] == [0, 1, -1, -1, -1]
    assert trace.lost["arguments of collectives"] == 3
