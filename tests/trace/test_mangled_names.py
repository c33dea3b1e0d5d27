"""Of mangled names of kernels, the identifiers are shown and matched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.trace.columns.labels import MAX_NAME, Labels
from tb_bottleneck.trace.kernel_names import identifiers

FILL = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"
CLAMP = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_21clamp_min_kernel_cudaERNS_18TensorIteratorBaseERKN3c106Scalar"
    "EENKUlvE_clEvENKUlvE6_clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_"
)
NORMALIZATION = "_ZN5cudnn25bn_fw_tr_1C11_kernel_NCHWIffLi512ELb1ELi1EEEv17cudnnTensorStructPKT_S1_PS2_PKT0_S7_S5_"
TYPES = "_ZN2at6native6kernelIDF16bDF16_DhLin3EJjPKfEXadL_Z3addEEEEvT_"

ENUMERATOR = "_ZN2ck6kernelIDF16bLNS1_18GemmSpecializationE7ENS_1AIfE4EdgeELi256EEEvT_"


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("_Z6kernelPfi", "kernel"),
        (FILL, "at::native::vectorized_elementwise_kernel<4, FillFunctor, array, 1>"),
        (
            CLAMP,
            "at::native::vectorized_elementwise_kernel"
            "<4, clamp_min_kernel_cuda, TensorIteratorBase, c10::Scalar, array, 2>",
        ),
        (NORMALIZATION, "cudnn::bn_fw_tr_1C11_kernel_NCHW<512, 1, 1, cudnnTensorStruct>"),
        (TYPES, "at::native::kernel<bfloat16, _Float16, _Float16, -3, add>"),
        (ENUMERATOR, "ck::kernel<bfloat16, GemmSpecialization, 7, A, Edge, 256>"),
        (FILL[:60], "at::native::vectorized_elementwise_kernel<4, FillF...>"),
    ],
)
def test_names(mangled, name):
    assert identifiers(mangled) == name


@pytest.mark.parametrize(
    "name", ["", "_Z", "_ZN", "_Zfoo", "_Z9", "_ZN1", "_Z" + "P" * 5000, "_Z" + "Z" * 5000, "_ZS_"]
)
def test_names_that_are_not_mangled_stay(name):
    assert identifiers(name) == name


@given(st.text("NZEILSTJPKUlDFMX_0123456789abcfijst", max_size=200))
def test_any_text_is_accepted(text):
    assert identifiers("_Z" + text)


@given(st.integers(1, len(CLAMP)))
def test_a_name_that_was_cut_begins_the_same(length):
    assert identifiers(CLAMP[:length]).startswith(("a", "_"))


def test_a_recording_has_decoded_names():
    labels = Labels()
    rows = [labels["kernel", name, 0, 7] for name in (FILL, "_Z" + "1o" * MAX_NAME)]
    assert rows
    shown, longest = labels.names()
    assert shown == identifiers(FILL)
    assert len(longest) <= MAX_NAME
