"""Products in another type: gains on what is wider, nothing on what is not, and refusals where it cannot be."""

import json

import numpy as np
import pytest
from comparison.sides import A100, V100, judged, repeated
from draw import drawn

from tb_bottleneck.comparison.changes.change import Unpredictable
from tb_bottleneck.comparison.changes.precision import MOVED, to_precision
from tb_bottleneck.comparison.side import open_side
from tb_bottleneck.replay.world import Case

DRAWING = repeated(9, op="##.....", gpu="..##...", stream="....##.")


def run(tmp_path, device=A100, kernel="ampere_sgemm_128x64_tn"):
    """The drawing with its products by this kernel."""
    text = json.dumps(drawn(DRAWING, deviceProperties=[device]))
    path = tmp_path / "run.pt.trace.json"
    path.write_text(text.replace("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", kernel))
    return open_side("run", [str(path)]).recording


def test_fp32_products_gain_and_what_lies_between_them_half_as_much(tmp_path):
    recording = run(tmp_path)
    found = to_precision(recording, "bf16").factors(Case.EXPECTED)
    product, stream = sorted(set(np.round(found, 6)))
    assert product == pytest.approx(1.04 / (312 * 0.87 / 19.5) ** 0.5, rel=1e-4), "no shapes: the square root"
    assert stream == MOVED[Case.EXPECTED]


def test_tf32_moves_as_many_bytes(tmp_path):
    assert 1.0 in to_precision(run(tmp_path), "tf32").factors(Case.EXPECTED)


def test_the_best_case_is_better_than_the_worst(tmp_path):
    change = to_precision(run(tmp_path), "bf16")
    assert (change.factors(Case.HIGH) < change.factors(Case.LOW)).all()


def test_what_runs_in_the_type_already_gains_nothing(tmp_path):
    recording = run(tmp_path, kernel="ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn")
    with pytest.raises(Unpredictable, match="would be faster"):
        to_precision(recording, "bf16")


def test_a_device_without_such_units_is_named(tmp_path):
    with pytest.raises(Unpredictable, match="Tesla V100-SXM2-32GB has no matrix units for bf16"):
        to_precision(judged(tmp_path, DRAWING, device=V100).recording, "bf16")
