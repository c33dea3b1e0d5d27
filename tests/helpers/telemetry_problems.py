"""Problems of a training that simulated telemetry shows, healthy runs that look like problems, and what is true."""

from dataclasses import replace

from helpers.simulated_telemetry import STEADY, S, SimulatedPhase


def simulated_phase(problem: str, seconds: float = 120.0, severity: float = 0.4) -> SimulatedPhase:
    """Returns a phase with this problem, which costs about `severity` of the time."""
    made = PROBLEMS[problem](severity)
    return replace(made, seconds=seconds)


def _load(severity: float) -> float:
    """Returns the loading time in ms of which this share of the step is not hidden by device work."""
    return STEADY / (1.0 - severity) - 41.5


def _more(severity: float, base: float = STEADY) -> float:
    """Returns the idle ms that are this share of a step with `base` ms of work."""
    return base * severity / (1.0 - severity)


PROBLEMS = {
    "healthy": lambda _: SimulatedPhase(),
    "memory": lambda _: SimulatedPhase(readings={"dram_activity": 0.8, "tensor_activity": 0.1, "power": 450.0}),
    "underfilled": lambda _: SimulatedPhase(
        readings={"dram_activity": 0.1, "tensor_activity": 0.1, "sm_activity": 0.2, "power": 250.0}
    ),
    "few_workers": lambda s: SimulatedPhase(load=_load(s), readings={"worker_cores": 3.2, "cpu_busy_cores": 6.0}),
    "in_process": lambda s: SimulatedPhase(load=_load(s), readings={"worker_cores": 0.0, "worker_count": 0.0}),
    "storage": lambda s: SimulatedPhase(
        load=_load(s), readings={"worker_cores": 0.6, "io_pressure": 0.6, "disk_busy": 0.9}
    ),
    "saturated": lambda s: SimulatedPhase(
        load=_load(s), readings={"worker_cores": 15.2, "worker_count": 16.0, "cpu_busy_cores": 15.9}
    ),
    "quota": lambda s: SimulatedPhase(load=_load(s), readings={"quota_throttled_total": 4 * S}),
    "copies": lambda s: SimulatedPhase(copy=_more(s), inside=1.0, readings={"pcie_received": 20e9}),
    "launches": lambda s: SimulatedPhase(dispatch=STEADY + _more(s), inside=_more(s), load=0.2),
    "waits": lambda s: SimulatedPhase(dispatch=STEADY + _more(s), inside=_more(s), load=0.2, syncs=3.0),
    "python": lambda s: SimulatedPhase(python=_more(s) + 60.0, dispatch=40.0),
    "emptied": lambda s: SimulatedPhase(dispatch=STEADY + _more(s), inside=_more(s), blocks=6.0),
    "retries": lambda s: SimulatedPhase(dispatch=STEADY + _more(s), inside=_more(s), blocks=3.0, retries=1.0),
    "paused": lambda s: SimulatedPhase(pause_every=20, pause=20 * _more(s)),
    "hot": lambda s: SimulatedPhase(
        device=STEADY / (1 - s),
        readings={"clock_event_reasons": 64.0, "sm_clock": 1.98e9 * (1 - s), "temperature": 91.0, "power": 400.0},
    ),
    "capped": lambda s: SimulatedPhase(
        device=STEADY / (1 - s), readings={"clock_event_reasons": 4.0, "sm_clock": 1.98e9 * (1 - s), "power": 699.0}
    ),
    "tenant": lambda s: SimulatedPhase(
        device=STEADY * (1 - s),
        inside=STEADY * s,
        readings={"other_processes": 1.0, "other_processes_utilisation": s},
    ),
    "link": lambda s: SimulatedPhase(copy=_more(s), inside=1.0, readings={"pcie_width": 4.0, "pcie_received": 12e9}),
    "on_cpu": lambda _: SimulatedPhase(device=None, dispatch=200.0, readings={"process_cores": 12.0}),
}
"""Maps a name to a function of the share that the problem costs, which returns the phase."""

HARD_NEGATIVES = {
    "waits behind a busy device": SimulatedPhase(syncs=6.0),
    "loading behind a busy device": SimulatedPhase(load=45.0),
    "python behind a busy device": SimulatedPhase(python=40.0),
    "a power cap at full clock": SimulatedPhase(
        readings={"clock_event_reasons": 4.0, "sm_clock": 1.85e9, "power": 699.0}
    ),
    "a cool device that draws little": SimulatedPhase(readings={"power": 300.0, "temperature": 40.0}),
    "pressure on the storage by others": SimulatedPhase(readings={"io_pressure": 0.7, "disk_busy": 1.0}),
    "an idle neighbour": SimulatedPhase(readings={"other_processes": 2.0}),
    "all cores busy, none waited for": SimulatedPhase(readings={"cpu_busy_cores": 15.8}),
    "copies beside the kernels": SimulatedPhase(readings={"pcie_received": 30e9}),
}
"""Healthy runs that look as if they had a problem: no cause may be reported."""

TRUTH = {
    "healthy": ("compute", None),
    "memory": ("memory", None),
    "underfilled": ("underfilled", "small_batch"),
    "few_workers": ("input", "too_few_workers"),
    "in_process": ("input", "loader_in_main_process"),
    "storage": ("input", "slow_storage"),
    "saturated": ("input", "too_few_cores"),
    "quota": ("input", "cpu_quota"),
    "copies": ("transfer", "exposed_copies"),
    "launches": ("launch", "small_kernels"),
    "waits": ("unexplained", "waits_or_launches"),
    "python": ("host", "host_python"),
    "emptied": ("allocator", "empty_cache"),
    "retries": ("allocator", "memory_pressure"),
    "paused": ("interruption", "periodic_pauses"),
    "hot": ("compute", "thermal_throttle"),
    "capped": ("compute", "power_cap"),
    "tenant": ("unexplained", "other_tenant"),
    "link": ("transfer", "degraded_link"),
    "on_cpu": ("gpu_unused", "model_on_cpu"),
}
"""Regime and cause that must be reported for each problem; a healthy device has no cause."""
