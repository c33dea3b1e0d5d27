"""Tests that each entry matches its own example and has a source, and which precision a kernel's name shows."""

import gzip
import json
import os
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tb_bottleneck.knowledge import catalogue
from tb_bottleneck.knowledge.catalogue import (
    DTYPES,
    UNITS,
    Precision,
    Unsourced,
    first_match,
    kernel_patterns,
    misaligned,
    precision_of,
    precision_patterns,
    refuse_unsourced,
)

LISTS = {
    "kernels": catalogue.kernel_patterns(),
    "fusible kernels": catalogue.fusible_patterns(),
    "calls": catalogue.call_patterns(),
    "operators": catalogue.operator_patterns(),
    "host operators": catalogue.host_operator_patterns(),
    "frames": catalogue.frame_patterns(),
    **{on: catalogue.activity_patterns(on) for on in ("annotation", "python", "operator", "overhead")},
}
ENTRIES = [(name, patterns, entry) for name, patterns in LISTS.items() for entry in patterns]


@pytest.mark.parametrize(("name", "patterns", "entry"), ENTRIES, ids=[f"{n}: {e.example[:40]}" for n, _, e in ENTRIES])
def test_an_example_is_recognised_by_its_own_entry(name, patterns, entry):
    assert entry.pattern.search(entry.example)
    assert first_match(patterns, entry.example) == entry.label


@pytest.mark.parametrize(
    ("kernel", "work"),
    [
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "contraction"),
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>", "contraction"),
        ("triton_tem_fused_mm_2", "contraction"),
        ("triton_per_fused_native_layer_norm_5", "streaming"),
        ("void fbgemm_gpu::permute_2D_data_kernel<false, int, int>", "streaming"),
        ("void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>", "contraction"),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "contraction"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "collective"),
        ("void rmsnorm_twoPassAlgo_e8<half>", "streaming"),
        ("void dgl::aten::cuda::SpMMCsrKernel<long, float, dgl::aten::cuda::binary::CopyLhs<float>>", "streaming"),
        ("void spmm_kernel<float, (ReductionType)0, true>", "streaming"),
        ("sm80_xmma_sparse_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64", "contraction"),
        ("void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4, true, c10::BFloat16>>", "streaming"),
        ("miopenGcnAsmConv1x1U", "contraction"),
        ("MIOpenConvUni", "contraction"),
        ("void moe_align_block_size_kernel<int>", "streaming"),
        (
            "device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>>",
            "contraction",
        ),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false>", "streaming"),
        ("void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024, cublasGemvParams<float>>", "streaming"),
        ("void rocblas_gemvt_warp_reduce_kernel<256, int, float, float, float>", "streaming"),
        ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float>>>", "streaming"),
        (
            "void gemmSN_NN_kernel<float, 256, 4, 2, 8, 4, 4, false, cublasGemvTensorStridedBatched<float>>",
            "contraction",
        ),
        ("void vllm::paged_attention_v1_kernel<unsigned short, unsigned short, 128, 16, 128>", "streaming"),
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, __hip_bfloat16, 16, 128>", "streaming"),
        ("void flashinfer::BatchPrefillWithPagedKVCacheKernel_flash_attn", "contraction"),
        ("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>", "contraction"),
        ("void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>", "streaming"),
        ("flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8>>", "contraction"),
        ("sage_fwd", "contraction"),
        ("sage_quant_kernel", "streaming"),
        ("_my_own_kernel", None),
    ],
)
def test_similar_names_are_distinguished(kernel, work):
    assert first_match(LISTS["kernels"], kernel) == work


@pytest.mark.parametrize(
    ("call", "role"),
    [
        ("cudaMemcpyAsync", "copy"),
        ("hipMemcpyWithStream", "copy"),
        ("cudaMemsetAsync", "fill"),
        ("cuLaunchKernelEx", "launch"),
        ("hipGraphLaunch", "launch"),
        ("cudaFree", "allocate"),
        ("hipDeviceSynchronize", "wait"),
        ("cudaStreamWaitEvent", None),
        ("cudaEventRecord", None),
    ],
)
def test_calls_have_their_role(call, role):
    assert first_match(LISTS["calls"], call) == role


def test_an_entry_without_a_source_is_refused():
    with pytest.raises(Unsourced, match="no source"):
        refuse_unsourced("x.toml", {"kernel": [{"pattern": "a", "source": " "}]})


FOLDER = Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent"))
TRACES = sorted(FOLDER.glob("*.json.gz"))


@pytest.mark.parametrize("entry", precision_patterns(), ids=lambda entry: f"{entry.label}: {entry.example[:50]}")
def test_an_example_of_a_precision_is_recognised(entry):
    assert entry.pattern.search(entry.example)
    assert first_match(precision_patterns(), entry.example) == entry.label
    found = precision_of(entry.example)
    assert found is not None
    assert found.unit in UNITS
    assert found.dtype is None or found.dtype in DTYPES


@pytest.mark.parametrize(
    ("kernel", "unit", "dtype"),
    [
        ("volta_sgemm_128x64_nn", "vector", "fp32"),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "vector", "fp32"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "tensor", "fp16"),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", "tensor", "fp16"),
        ("ampere_sgemm_128x128_nn", "vector", "fp32"),
        ("ampere_fp16_sgemm_fp16_32x128_tn", "vector", "fp16"),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_relu_f2f_stages_32x5_tn", "tensor", "fp16"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "tensor", "bf16"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nt_align4>", "tensor", "tf32"),
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>", "tensor", "bf16"),
        ("void cutlass::Kernel<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_64x1_nn_align8>", "tensor", "fp16"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", "vector", "fp32"),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64>", "tensor", "bf16"),
        ("void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x256>", "tensor", "tf32"),
        ("cutlass_80_tensorop_i16832gemm_s8_128x256_128x3_tn_align16", "tensor", "int8"),
        ("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn", "tensor", "bf16"),
        ("cutlass3x_sm90_tensorop_s64x128x32gemm_e4m3_e4m3_f32_bf16_bf16_128x128x128_2x1x1", "tensor", "fp8"),
        ("cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32", "tensor", "fp4"),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x64x32", "tensor", "fp16"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_kernel", "vector", "fp32"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "tensor", "bf16"),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1", "tensor", "tf32"),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "tensor", "bf16"),
        ("nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNT", "tensor", "bf16"),
        ("nvjet_hsh_256x128_64x4_2x1_v_bz_TNN", "tensor", "fp16"),
        ("nvjet_qqtst_112x128_128x7_2x1_v_bz_coopA_algo2_TNN", "tensor", "fp8"),
        ("bmm_E4m3_E4m3E4m3_Fp32_t128x8x128_s6", "tensor", "fp8"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x256x1", "tensor", "bf16"),
        ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<cutlass::half_t>", "tensor", "fp16"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "tensor", "bf16"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128", "tensor", "fp16"),
        ("aiter::fmha_fwd_hd128_bf16_rtz", "tensor", "bf16"),
        ("attn_fwd.kd", "tensor", None),
        ("triton_tem_fused_mm_2", "tensor", None),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x64x128_MI16x16x1_SN_LDSB1", "tensor", "bf16"),
        ("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1", "tensor", "bf16"),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SE_1LDSB0", "tensor", "fp16"),
        ("Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN_LDSB0", "tensor", "fp32"),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_APM1_AF0EM1_AF1EM1_AMAS0_ASAE01", "vector", "fp32"),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4_ws1x1", "tensor", "bf16"),
        ("void gemmSN_NN_kernel<float, 128, 2, cublasGemvTensorStridedBatched<__half const>", "vector", "fp16"),
        ("void splitKreduce_kernel<32, 16, int, float, float, float, float, true>", "vector", "fp32"),
    ],
)
def test_similar_precisions_are_distinguished(kernel, unit, dtype):
    assert precision_of(kernel) == Precision(unit, dtype)


@pytest.mark.parametrize(
    "kernel",
    [
        "",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<c10::BFloat16>>",
        "void fbgemm_gpu::_compute_FP8_quantize_cuda_kernel<float>(float const*",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        "triton_poi_fused_add_bf16_3",
        "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128>",
        "_my_own_gemm_kernel",
    ],
)
def test_other_kernels_and_unclear_names_have_no_precision(kernel):
    assert precision_of(kernel) is None


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>", True),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_32x1_tn_align2>", True),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align1>", True),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>", False),
        ("cutlass_80_tensorop_i16832gemm_s8_128x256_128x3_tn_align16", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", False),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", False),
    ],
)
def test_misaligned_shapes_show_in_the_name(kernel, expected):
    assert misaligned(kernel) is expected


def test_only_a_part_of_a_very_long_name_is_read():
    assert precision_of("Cijk_" + "a_" * 200_000) is None


@cache
def kernels_of_public_recordings():
    """Returns the distinct names of contraction kernels, by recording."""
    found = defaultdict(set)
    for path in TRACES:
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        for name in set(re.findall(r'"name": ?("(?:[^"\\]|\\.)*")', text)):
            kernel = json.loads(name, strict=False)
            if first_match(kernel_patterns(), kernel) == "contraction" and not kernel.startswith(("aten::", "nn.")):
                found[path.name.removesuffix(".json.gz")].add(kernel)
    return found


@pytest.mark.skipif(not TRACES, reason="TB_BOTTLENECK_TRACES names no folder with recordings")
def test_kernels_of_public_recordings():
    """The precision of these runs is known: V100 in fp32; MI300X in bf16; A100 with tf32; H100 in bf16."""
    for recording, kernels in kernels_of_public_recordings().items():
        for kernel in kernels:
            found = precision_of(kernel)
            if re.match(r"volta_|ampere_sgemm", kernel):
                assert found == Precision("vector", "fp32"), kernel
            if kernel.startswith("Cijk_") and recording.startswith("mi300"):
                assert found == Precision("tensor", "bf16"), kernel
            if re.search(r"tensorop_s1688gemm_\d", kernel):
                assert found == Precision("tensor", "tf32"), kernel
            if re.search(r"bf16|bfloat16|DF16b", kernel) and found is not None:
                assert found.dtype == "bf16", kernel
            if re.search(r"__half|_f16_|fp16", kernel) and found is not None:
                assert found.dtype == "fp16", kernel
            if recording.startswith("kineto_resnet50") and found is not None:
                assert found == Precision("vector", "fp32"), kernel
