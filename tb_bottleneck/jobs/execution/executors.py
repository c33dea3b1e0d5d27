"""Chooses where many recordings are analysed: in this process, in local processes, or on a Dask cluster.

All executors run the same module-level function on plain data. A Dask cluster is configured by its own YAML files and
DASK_* variables. This module only connects to the cluster.
"""

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tb_bottleneck.base.errors import NoCluster
from tb_bottleneck.report.cache.file_identity import code_version
from tb_bottleneck.sources.paths import filesystem_of, status_of

SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
MAX_SCHEDULER_FILE = 1 << 20
NO_DASK = 'Dask is not installed: pip install "tb_bottleneck[dask]"'


@dataclass(frozen=True)
class ClusterOptions:
    """Where to analyse recordings: on a Dask cluster, or, if no value is set, in local processes.

    `scheduler` is the address of a running Dask scheduler, `scheduler_file` the path of the file in which a scheduler
    has written its address. `workers` is the number of workers of a Dask cluster to start on this machine.
    """

    scheduler: str = ""
    scheduler_file: str = ""
    workers: int = 0

    @classmethod
    def of(cls, scheduler: str, scheduler_file: str, workers: int, environment: Mapping[str, str]) -> "ClusterOptions":
        """Returns the given options. If all of them are empty or 0, the address of the scheduler is taken from
        SCHEDULER_VARIABLE in `environment`, if it is set."""
        if not (scheduler or scheduler_file or workers):
            scheduler = environment.get(SCHEDULER_VARIABLE, "")
        return cls(scheduler, scheduler_file, workers)

    @property
    def on_dask(self) -> bool:
        """True if a Dask cluster is requested."""
        return bool(self.scheduler or self.scheduler_file or self.workers)


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Returns a pool of `workers` spawned processes, which share no state with this process."""
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start)


def _start() -> None:
    # Each process uses one core; numpy would start a thread per core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextmanager
def dask_executors(options: ClusterOptions) -> Iterator[tuple[Callable[[], Executor], int]]:
    """Yields a function that opens an executor on the Dask cluster, and the number of workers of the cluster. A cluster
    that was started on this machine ends with the block.

    Raises:
        NotFound: the scheduler file does not exist.
        NoCluster: Dask is not installed, the scheduler cannot be reached, or a worker has another version of the code.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise NoCluster(NO_DASK) from error
    try:
        with _cluster(options) as where, Client(**where, set_as_default=False) as client:
            yield lambda: client.get_executor(pure=False), _checked_workers(client)
    except (OSError, TimeoutError, ValueError) as error:
        raise NoCluster(f"the Dask scheduler cannot be used: {error}") from error


@contextmanager
def _cluster(options: ClusterOptions) -> Iterator[dict[str, Any]]:
    """Yields the keyword arguments of a Dask client. If the options name a scheduler, they connect to its cluster.
    Otherwise, they connect to a new cluster on this machine, which ends with the block."""
    address = _written_address(options.scheduler_file) if options.scheduler_file else options.scheduler
    if address:
        _check(address)
        yield {"address": address, "timeout": 30}
        return
    from distributed import LocalCluster

    settings = {"n_workers": options.workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    # Batches of dead workers are run again one by one (batches.py), so Dask need not retry them.
    with LocalCluster(**settings, scheduler_kwargs={"allowed_failures": 0}) as cluster:
        yield {"address": cluster}


def _written_address(path: str) -> str:
    """Returns the address of the scheduler in the scheduler file at `path`. Raises NotFound if the file does not exist,
    and ValueError if it contains no address."""
    status_of(path)  # Dask would wait for a file that does not exist
    with filesystem_of(path).open(path) as file:
        written = json.loads(file.read(MAX_SCHEDULER_FILE))
    address = written.get("address") if isinstance(written, dict) else None
    if not isinstance(address, str) or not address:
        raise ValueError(f"{path} names no address")
    return address


def _check(address: str) -> None:
    """Raises OSError or ValueError if `address`, the address of a Dask scheduler, cannot be resolved or needs a
    certificate that is not configured. Without this check, a Dask client would fail only after a minute."""
    from distributed.comm import resolve_address
    from distributed.security import Security

    resolve_address(address)
    if address.startswith("tls://") and Security().get_connection_args("client").get("ssl_context") is None:
        raise ValueError("TLS needs the certificate of the client: distributed.comm.tls in Dask's configuration")


def _checked_workers(client: Any) -> int:
    """Returns the number of workers of the cluster. Raises TimeoutError if there is none after 30 s, and NoCluster if a
    worker has another version of tb_bottleneck's code."""
    client.wait_for_workers(1, timeout=30)
    versions = client.run(code_version)
    others = sorted(address for address, version in versions.items() if version != code_version())
    if others:
        raise NoCluster(f"other code of tb_bottleneck runs on {len(others)} of {len(versions)} workers: {others[0]}")
    return len(versions)
