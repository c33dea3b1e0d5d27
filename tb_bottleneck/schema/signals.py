"""The signals that the monitor writes and the tab reads: name, unit and meaning.

Units: share (0 to 1), bytes, bytes_per_s, W, J, celsius, Hz, ns, count. Names of counters that only grow end in
`_total`. They are written as they are read; readers take differences.
"""

from dataclasses import dataclass

CONTEXT_TAG = "tb_bottleneck/context"
PACKET_TAG = "tb_bottleneck/telemetry"
PLUGIN_NAME = "tb_bottleneck"
ENDED = "ended"
"""The code of the last note of a monitor. A training that was killed does not write it."""
CAPTURE_STARTED, CAPTURE_ENDED, SNAPSHOT_TAKEN = "capture_started", "capture_ended", "snapshot_taken"
CAPTURE_OVER = (CAPTURE_ENDED, "capture_dropped", "dropped")
"""The codes of notes about traces and memory snapshots; CAPTURE_OVER ends what CAPTURE_STARTED began."""
HEARTBEAT_FILE = "heartbeat.json"
"""The name of the file in a run directory that says where the training is (monitor/writer/heartbeat.py)."""
HEARTBEAT_SCHEMA = 1
HOST = "host"
"""The `device` of a series that is about the machine and not about a GPU."""


@dataclass(frozen=True, slots=True)
class Signal:
    """The unit and the meaning of a signal. The module's first lines list the units."""

    unit: str
    meaning: str


SERIES: dict[str, Signal] = {
    "gpu_utilisation": Signal("share", "Share of the driver's sample period in which any kernel ran, even a small one"),
    "memory_utilisation": Signal("share", "Share of the driver's sample period in which device memory was accessed"),
    "memory_used": Signal("bytes", "Device memory in use, by all processes"),
    "memory_total": Signal("bytes", "Size of the device memory"),
    "power": Signal("W", "Power drawn by the board"),
    "power_limit": Signal("W", "Power limit in force"),
    "power_limit_default": Signal("W", "Default power limit of the board"),
    "energy_total": Signal("J", "Energy used since the driver was loaded"),
    "temperature": Signal("celsius", "Temperature of the GPU"),
    "memory_temperature": Signal("celsius", "Temperature of the device memory"),
    "sm_clock": Signal("Hz", "Clock of the multiprocessors"),
    "sm_clock_max": Signal("Hz", "Highest clock of the multiprocessors"),
    "memory_clock": Signal("Hz", "Clock of the device memory"),
    "memory_clock_max": Signal("Hz", "Highest clock of the device memory"),
    "clock_event_reasons": Signal("count", "Bit mask of the reasons for reduced clocks, from NVML"),
    "power_capped_total": Signal("ns", "Time in which the power limit reduced the clocks"),
    "thermal_capped_total": Signal("ns", "Time in which heat reduced the clocks"),
    "pcie_generation": Signal("count", "Current PCIe generation of the link"),
    "pcie_generation_max": Signal("count", "Maximum PCIe generation of this GPU in this slot"),
    "pcie_generation_gpu_max": Signal("count", "Maximum PCIe generation of the GPU"),
    "pcie_width": Signal("count", "PCIe lanes currently in use"),
    "pcie_width_max": Signal("count", "Maximum number of PCIe lanes of this GPU in this slot"),
    "pcie_sent": Signal("bytes_per_s", "PCIe traffic from the GPU"),
    "pcie_received": Signal("bytes_per_s", "PCIe traffic to the GPU"),
    "pcie_replays_total": Signal("count", "PCIe packets that were sent again"),
    "nvlink_sent_total": Signal("bytes", "NVLink traffic from the GPU"),
    "nvlink_received_total": Signal("bytes", "NVLink traffic to the GPU"),
    "sm_activity": Signal("share", "Share of the time in which a multiprocessor had a warp, mean over all of them"),
    "sm_occupancy": Signal("share", "Resident warps, share of the maximum"),
    "tensor_activity": Signal("share", "Share of the time in which the tensor cores worked"),
    "dram_activity": Signal("share", "Share of the peak memory bandwidth in use"),
    "fp32_activity": Signal("share", "Share of the time in which the fp32 units worked"),
    "other_processes": Signal("count", "Other processes with work on the GPU"),
    "other_processes_utilisation": Signal("share", "Share of the time in which kernels of other processes ran"),
    "cpu_busy_cores": Signal("count", "Busy cores of the machine, by all processes"),
    "cpu_usable_cores": Signal("count", "Cores that this process may use: affinity, or the quota if that is less"),
    "cpu_top_core": Signal("share", "Busy share of the busiest core"),
    "process_cores": Signal("count", "Cores used by this process, without its children"),
    "process_threads": Signal("count", "Threads of this process"),
    "involuntary_switches_total": Signal("count", "Involuntary context switches of its threads"),
    "core_wait_total": Signal("ns", "Time in which its main thread was runnable and waited for a core"),
    "worker_cores": Signal("count", "Cores used by the worker processes of the loader"),
    "worker_core_wait": Signal("count", "Worker processes of the loader that are runnable and wait for a core"),
    "worker_read": Signal("bytes_per_s", "Read by the worker processes of the loader, from files, caches and pipes"),
    "process_read": Signal("bytes_per_s", "Read by this process, from files, caches and pipes"),
    "worker_count": Signal("count", "Live worker processes of the loader"),
    "run_queue": Signal("count", "Running and runnable threads"),
    "cpu_pressure": Signal("share", "Share of the time in which a thread waited for a core (PSI some)"),
    "io_pressure": Signal("share", "Share of the time in which a thread waited for storage (PSI some)"),
    "memory_pressure": Signal("share", "Share of the time in which a thread waited for memory (PSI some)"),
    "quota_throttled_total": Signal("ns", "Time in which the CPU quota throttled the control group, summed over cores"),
    "quota_throttled_periods": Signal("share", "Share of the periods in which the CPU quota was used up"),
    "disk_read": Signal("bytes_per_s", "Read from block devices, by all processes"),
    "disk_written": Signal("bytes_per_s", "Written to block devices, by all processes"),
    "disk_busy": Signal("share", "Share of the time in which the busiest block device had a request"),
    "network_received": Signal("bytes_per_s", "Received from the network"),
    "network_sent": Signal("bytes_per_s", "Sent to the network"),
    "host_memory_used": Signal("share", "Share of the host's memory in use; of the control group's if that is fuller"),
    "host_memory_available": Signal("bytes", "Memory of the host that this process can still use without swapping"),
    "host_memory_total": Signal("bytes", "Memory of the machine, or of the control group if that has less left"),
    "process_memory": Signal("bytes", "Resident memory of this process"),
    "process_pss": Signal("bytes", "Memory of this process; shared pages are divided among their processes"),
    "worker_pss": Signal("bytes", "Memory of the worker processes of the loader, with shared pages divided likewise"),
    "shared_memory_used": Signal("bytes", "Bytes in /dev/shm, by all processes"),
    "shared_memory_total": Signal("bytes", "Size of /dev/shm"),
    "pinned_memory": Signal("bytes", "Host memory that torch has pinned for this process, in use and cached"),
    "monitor_cost": Signal("share", "Share of one core used by the monitor itself"),
}

SPARSE_COUNTS = frozenset({"device_allocations", "device_frees", "allocation_retries"})
"""Step columns with a value only in some steps: the count since the previous value."""

STEP_COLUMNS: dict[str, Signal] = {
    "loader_wait": Signal("ns", "Host time in the iterator of the loader"),
    "transfer": Signal("ns", "Host time in calls that move tensors between host and device"),
    "forward": Signal("ns", "Host time in the model's forward pass"),
    "backward": Signal("ns", "Host time in the backward pass"),
    "optimizer": Signal("ns", "Host time in the optimizer's step"),
    "device_busy": Signal("ns", "Time on the device's stream from the first to the last event of the step"),
    "syncs": Signal("count", "Calls from Python in which the host waited for the device: a lower bound"),
    "device_allocations": Signal("count", "Blocks that the allocator allocated from the driver, since the last value"),
    "device_frees": Signal("count", "Blocks that the allocator released to the driver, since the last value"),
    "allocation_retries": Signal("count", "Allocations that first had to flush the cache, since the last value"),
    "memory_allocated": Signal("bytes", "Bytes in tensors on the device, about once a second"),
    "memory_allocated_peak": Signal("bytes", "Most bytes in tensors since torch's peak statistics were reset"),
    "memory_reserved": Signal("bytes", "Bytes that the allocator has from the driver, about once a second"),
    "evaluation": Signal("ns", "Host time in fetching and processing batches that are not trained on"),
    "checkpoint": Signal("ns", "Host time in calls that write a checkpoint: torch.save, torch.distributed.checkpoint"),
    "logging": Signal("ns", "Host time in calls of TensorBoard's SummaryWriter"),
    "garbage_collection": Signal("ns", "Host time in Python's garbage collector, without the youngest generation"),
    "epoch_start": Signal("ns", "Host time in creating an iterator of the loader, and in its first batch"),
    "thread_cpu": Signal("ns", "CPU time of the training thread"),
    "samples": Signal("count", "Samples in the step's batches"),
    "profiled": Signal("count", "1 if a profiler recorded this step, which makes it slower"),
}
