"""Hides the names of hosts in the names of recordings.

torch.profiler names a trace HOST_PROCESS.TIME.pt.trace.json by default (torch/profiler/profiler.py,
tensorboard_trace_handler). Reports are shared, and names of hosts tell about a network. They are replaced by a short
hash, the same in all recordings of a host, so that a slow host can still be told from the others.
"""

import hashlib
import os
import re
from collections.abc import Mapping

SHOW_VARIABLE = "TB_BOTTLENECK_SHOW_HOSTS"
"""Environment variable: with `1`, the tab shows the names of hosts."""

_DEFAULT_NAME = re.compile(r"(?P<host>.+)(?P<rest>_\d+\.[12]\d{12}(?:\d{6})?\.pt\.trace\.json(?:\.gz)?)")
_OWN_NAME = re.compile(r"rank\d+|host-[0-9a-f]{6}")  # of the monitor's traces, and of a name that is hidden already
_SALT = b"tb_bottleneck host:"


def host_of(source: str) -> str:
    """Returns the name of the host in torch.profiler's default name of a trace; empty for another name."""
    match = _DEFAULT_NAME.fullmatch(source)
    return match["host"] if match is not None and not _OWN_NAME.fullmatch(match["host"]) else ""


def without_host(source: str, environment: Mapping[str, str] = os.environ) -> str:
    """Returns the file name of a recording with a hash in place of the host's name, unless SHOW_VARIABLE is set."""
    host = host_of(source)
    if not host or environment.get(SHOW_VARIABLE) == "1":
        return source
    digest = hashlib.sha256(_SALT + host.encode("utf-8", "replace")).hexdigest()
    return f"host-{digest[:6]}{source.removeprefix(host)}"
