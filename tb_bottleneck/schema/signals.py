"""The signals that the monitor writes and the tab reads: name, unit, and one sentence for each.

Units: share (0 to 1), bytes, bytes_per_s, W, J, celsius, Hz, ns, count. Counters that only grow are written as they are
read, and end in `_total`; whoever reads them takes differences.
"""

from dataclasses import dataclass

CONTEXT_TAG = "tb_bottleneck/context"
PACKET_TAG = "tb_bottleneck/telemetry"
PLUGIN_NAME = "tb_bottleneck"
ENDED = "ended"
"""The code of the note that a monitor writes last; a training that was killed leaves none."""
HOST = "host"
"""The `device` of a series that belongs to the machine and not to a GPU."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: its unit, and a sentence for people."""

    unit: str
    meaning: str


SERIES: dict[str, Signal] = {
    "gpu_utilisation": Signal("share", "Part of the driver's sample period in which any kernel ran, however small"),
    "memory_utilisation": Signal("share", "Part of the driver's sample period in which device memory was accessed"),
    "memory_used": Signal("bytes", "Device memory in use, by every process"),
    "memory_total": Signal("bytes", "Device memory there is"),
    "power": Signal("W", "Power drawn by the board"),
    "power_limit": Signal("W", "Power limit in force"),
    "power_limit_default": Signal("W", "Power limit that the board was shipped with"),
    "energy_total": Signal("J", "Energy drawn since the driver was loaded"),
    "temperature": Signal("celsius", "Temperature of the GPU"),
    "memory_temperature": Signal("celsius", "Temperature of the device memory"),
    "sm_clock": Signal("Hz", "Clock of the multiprocessors"),
    "sm_clock_max": Signal("Hz", "Highest clock of the multiprocessors"),
    "memory_clock": Signal("Hz", "Clock of the device memory"),
    "memory_clock_max": Signal("Hz", "Highest clock of the device memory"),
    "clock_event_reasons": Signal("count", "Bit mask of the reasons that hold the clocks down, as NVML gives it"),
    "power_capped_total": Signal("ns", "Time for which the power limit held the clocks down"),
    "thermal_capped_total": Signal("ns", "Time for which heat held the clocks down"),
    "pcie_generation": Signal("count", "PCIe generation that the link runs at now"),
    "pcie_generation_max": Signal("count", "PCIe generation that this GPU in this slot could run at"),
    "pcie_generation_gpu_max": Signal("count", "PCIe generation that the GPU alone could run at"),
    "pcie_width": Signal("count", "PCIe lanes in use now"),
    "pcie_width_max": Signal("count", "PCIe lanes that this GPU in this slot could use"),
    "pcie_sent": Signal("bytes_per_s", "PCIe traffic from the GPU"),
    "pcie_received": Signal("bytes_per_s", "PCIe traffic to the GPU"),
    "pcie_replays_total": Signal("count", "PCIe packets that had to be sent again"),
    "nvlink_sent_total": Signal("bytes", "NVLink traffic from the GPU"),
    "nvlink_received_total": Signal("bytes", "NVLink traffic to the GPU"),
    "sm_activity": Signal("share", "Part of the time that a multiprocessor had a warp, mean over all of them"),
    "sm_occupancy": Signal("share", "Warps that were resident, of those that could be"),
    "tensor_activity": Signal("share", "Part of the time that the tensor cores worked"),
    "dram_activity": Signal("share", "Part of the peak memory bandwidth in use"),
    "fp32_activity": Signal("share", "Part of the time that the fp32 units worked"),
    "other_processes": Signal("count", "Other processes that have work on the GPU"),
    "other_processes_utilisation": Signal("share", "Part of the time that kernels of other processes ran"),
    "cpu_busy_cores": Signal("count", "Cores of the machine that worked, by every process"),
    "cpu_usable_cores": Signal("count", "Cores that this process may use: affinity, or quota where that is less"),
    "cpu_top_core": Signal("share", "Busy share of the busiest core"),
    "process_cores": Signal("count", "Cores that this process used, without its children"),
    "process_threads": Signal("count", "Threads of this process"),
    "involuntary_switches_total": Signal("count", "Times that a thread was put off a core it still used"),
    "worker_cores": Signal("count", "Cores that the loader's worker processes used"),
    "worker_count": Signal("count", "Worker processes of the loader that live"),
    "run_queue": Signal("count", "Threads that run or want to run"),
    "cpu_pressure": Signal("share", "Part of the time that some thread waited for a core (PSI some)"),
    "io_pressure": Signal("share", "Part of the time that some thread waited for storage (PSI some)"),
    "memory_pressure": Signal("share", "Part of the time that some thread waited for memory (PSI some)"),
    "quota_throttled_total": Signal("ns", "Time for which the CPU quota held the control group, summed over cores"),
    "quota_throttled_periods": Signal("share", "Periods of the CPU quota in which it was used up"),
    "disk_read": Signal("bytes_per_s", "Read from block devices, by every process"),
    "disk_written": Signal("bytes_per_s", "Written to block devices, by every process"),
    "disk_busy": Signal("share", "Part of the time that the busiest block device had a request"),
    "network_received": Signal("bytes_per_s", "Received from the network"),
    "network_sent": Signal("bytes_per_s", "Sent to the network"),
    "host_memory_used": Signal("share", "Part of the machine's memory in use"),
    "monitor_cost": Signal("share", "Part of one core that the monitor itself used"),
}

STEP_COLUMNS: dict[str, Signal] = {
    "loader_wait": Signal("ns", "Host time in the loader's iterator"),
    "transfer": Signal("ns", "Host time in calls that move tensors between host and device"),
    "forward": Signal("ns", "Host time in the model's forward pass"),
    "backward": Signal("ns", "Host time in the backward pass"),
    "optimizer": Signal("ns", "Host time in the optimizer's step"),
    "device_busy": Signal("ns", "Time on the device's stream from the step's first event to its last"),
    "syncs": Signal("count", "Calls from Python that made the host wait for the device: a lower bound"),
    "device_allocations": Signal("count", "Blocks that the allocator asked the driver for, since this was last told"),
    "device_frees": Signal("count", "Blocks that the allocator gave back to the driver, since this was last told"),
    "allocation_retries": Signal("count", "Allocations that first had to empty the cache, since this was last told"),
    "evaluation": Signal("ns", "Host time in fetching, and working on, batches that were not trained on"),
    "samples": Signal("count", "Samples in the step's batches"),
    "profiled": Signal("count", "1 where a profiler recorded this step, which makes it slower"),
}
