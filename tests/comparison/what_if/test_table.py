"""The table of the usual conditions has the predictions of `what_if`, and reasons for those that cannot be made."""

import os
from pathlib import Path

import pytest

from tb_bottleneck.base import calibration_store as calibrations
from tb_bottleneck.commands.arguments import open_run
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.comparison.what_if.table import DEVICES, what_if_table
from tb_bottleneck.text.comparison import render_what_if_table

TRACES = Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent"))
DEMO = Path(__file__).parents[3] / "demo" / "recorded"


@pytest.mark.skipif(not TRACES.is_dir(), reason="TB_BOTTLENECK_TRACES does not name the folder")
def test_each_row_is_the_prediction_of_its_condition():
    run = open_run(str(TRACES / "h100_owlv2.json.gz"))
    table = what_if_table(run)
    assert [row.title for row in table.rows if row.group == "device"] == [it for it in DEVICES if it != "H100 SXM"]
    for row in table.rows:
        value = row.value if row.group in ("device", "precision") else int(row.value)
        alone = what_if(run, WhatIfOptions(**{row.group: value}))
        assert (row.after, row.per, row.regime, row.memory) == (alone.after, alone.per, alone.regime, alone.memory)
    assert [note.split(":")[0] for note in table.notes] == ["bf16"]
    text = render_what_if_table(table)
    assert all(row.title in text for row in table.rows)


def test_a_recording_without_predictions_says_why():
    table = what_if_table(open_run(str(DEMO / "checkpointing" / "slow")))
    assert not table.rows
    assert [note.split(":")[0] for note in table.notes] == ["Larger batches", "bf16", "Loader workers"]


def test_a_refused_run_has_its_reason(tmp_path):
    (tmp_path / "t.pt.trace.json").write_text('{"traceEvents": []}')
    table = what_if_table(open_run(str(tmp_path / "t.pt.trace.json")))
    assert not table.rows
    assert table.notes


MEASURED = {"bf16_flops": 4e14, "tf32_flops": 2e14, "fp32_flops": 4e13, "copy_bytes_per_s": 1.2e12}


def test_devices_that_the_user_calibrated_are_predicted():
    run = open_run(str(DEMO / "simulated" / "small_kernels" / "slow"))
    before = [row.title for row in what_if_table(run).rows]
    calibrations.save("NVIDIA Unlisted 9", "590.1", MEASURED)
    calibrations.save("NVIDIA H100 80GB HBM3", "590.1", MEASURED)  # H100 SXM is predicted anyway
    calibrations.save("AMD EPYC", "torch 2.13, 8 threads", {"fp32_flops": 1e11})
    rows = what_if_table(run).rows
    assert [row.title for row in rows if row.title not in before] == ["NVIDIA Unlisted 9 (calibrated)"]
    faster = {name: value * 3 for name, value in MEASURED.items()}
    calibrations.save("NVIDIA Unlisted 9", "590.2", faster)
    (again,) = (row for row in what_if_table(run).rows if row.title.endswith("(calibrated)"))
    (one,) = (row for row in rows if row.title.endswith("(calibrated)"))
    assert again.after.speedup > one.after.speedup, "the newest driver's figures count"
