"""Which machine this is, without its name."""

import hashlib
import platform
from pathlib import Path


def machine_digest() -> str:
    """Returns a short digest of this machine's name and start: equal in all processes until the next start."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        boot = ""
    return hashlib.sha256(f"{platform.node()}\0{boot}".encode("utf-8", "replace")).hexdigest()[:12]
