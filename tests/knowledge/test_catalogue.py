"""Each entry matches its own example and has a source."""

import pytest

from tb_bottleneck.knowledge import catalogue
from tb_bottleneck.knowledge.catalogue import Unsourced, first_match, refuse_unsourced

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
