"""The demo's recordings of GPUs, which simulators wrote (simulated_demo.py): no GPU was used for them.

They show what the tab says about a GPU to those who have none at hand. The name of the device ends with "(simulated)",
in the tab, in the terminal and in JSON.
"""

from demo.pairs import RECORDED

SIMULATED = RECORDED / "simulated"
SITUATIONS = {
    "metric_reads": "metrics are read from the device one by one; fixed by leaving them there",
    "small_kernels": "kernels end before the next one is launched; fixed by a CUDA graph",
    "loader_in_main_process": "the training process creates the batches; fixed by four workers",
    "pageable_copies": "batches are copied from pageable memory; fixed by pinned memory",
    "unfused_attention": "attention by separate products; fixed by scaled_dot_product_attention",
    "slow_rank_of_eight": "one of eight GPUs is slower than the others (open the heat map); fixed by equal GPUs",
}
"""Names of the folders and what they show. Each has a recording without the fix (slow) and with it (fixed)."""
