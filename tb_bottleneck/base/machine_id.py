"""An id of this machine that does not reveal its name."""

import hashlib
import platform
from pathlib import Path


def machine_digest() -> str:
    """Returns a digest (12 hex digits) of this machine's name and, on Linux, its boot.

    The digest is the same in all processes until the machine boots again.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        boot = ""
    return hashlib.sha256(f"{platform.node()}\0{boot}".encode("utf-8", "replace")).hexdigest()[:12]
