"""Facts about this machine: an id that does not reveal its name, and its cores."""

import os


def machine_digest() -> str:
    """Returns a digest (12 hex digits) of this machine's name and, on Linux, its boot.

    The digest is the same in all processes until the machine boots again.
    """
    import hashlib  # only the monitor needs them
    import platform
    from pathlib import Path

    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        boot = ""
    return hashlib.sha256(f"{platform.node()}\0{boot}".encode("utf-8", "replace")).hexdigest()[:12]


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
