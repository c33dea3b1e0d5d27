"""Writes the traces of a program's own torch.profiler, with the lines of calls and the facts of the process."""

import contextlib
import gzip
import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tb_bottleneck.base.persistence import atomic_file
from tb_bottleneck.monitor.capture import call_lines
from tb_bottleneck.monitor.capture.trace_capture import LATE_METADATA_KEY
from tb_bottleneck.monitor.facts.process import as_metadata
from tb_bottleneck.monitor.facts.process_groups import host_collectives

_LEVEL = 5

_log = logging.getLogger(__name__)


def trace_handler(
    dir_name: "str | os.PathLike[str]", worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """Returns a handler for `on_trace_ready` of torch.profiler.profile, which writes traces under `dir_name`.

        with profile(schedule=..., on_trace_ready=trace_handler("runs/mine"), with_stack=True) as prof:

    Arguments and file names are those of `torch.profiler.tensorboard_trace_handler`: `WORKER.TIME.pt.trace.json`, with
    `.gz` at the end if `use_gzip` is True. WORKER is `worker_name`, by default the name of the host and the process id;
    TIME is in ns since 1970. The traces also contain the line of each call of the program (recorded with
    `with_stack=True`) and the facts of `as_metadata`.

    The handler never raises: a trace that cannot be written is lost, with a warning of this module's logger.
    """

    def handler(profiler: Any) -> None:
        try:
            _write(profiler, Path(dir_name), worker_name or f"{socket.gethostname()}_{os.getpid()}", use_gzip)
        except Exception as error:  # the training must continue without the trace
            _log.warning("a trace could not be written to %s: %s: %s", dir_name, type(error).__name__, error)

    return handler


def _write(profiler: Any, folder: Path, worker: str, zipped: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if zipped else ''}"
    text = path.with_name(f"{path.name}.unpacked")
    try:
        profiler.export_chrome_trace(str(text))
        lines = call_lines.call_lines(profiler)
        keys = {LATE_METADATA_KEY: as_metadata(host_collectives())} | ({} if lines is None else {call_lines.KEY: lines})
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(open(text, "rb"))
            target: Any = stack.enter_context(atomic_file(path, mode=0o666))
            if zipped:
                target = stack.enter_context(gzip.open(target, "wb", compresslevel=_LEVEL))
            call_lines.copy_with_keys(source, target, keys)
    finally:
        text.unlink(missing_ok=True)
