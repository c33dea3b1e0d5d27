"""Busy time of the device by regime: products of a matrix and a vector read each entry once, so memory limits them."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose

DECODING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    gpu     .abcdefghi.abcdefgh.abcdefghi.
"""
GEMV = "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __half, __half, __half, float>"
GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x4_tn"


@pytest.mark.parametrize(("kernel", "regime"), [(GEMV, "memory"), (GEMM, "compute")])
def test_memory_limits_products_with_a_vector(tmp_path, kernel, regime):
    whole = drawn(DECODING)
    for event in whole["traceEvents"]:
        if event["cat"] == "kernel":
            event["name"] = kernel
    path = tmp_path / "decoding.pt.trace.json"
    path.write_text(json.dumps(whole))
    assert diagnose(str(path)).verdict.regime == regime
