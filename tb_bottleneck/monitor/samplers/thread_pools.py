"""Facts about the CPU thread pools of numpy, OpenCV and torch."""

import re
import sys

_MAX_LENGTH = 40  # characters of a name or version


def thread_pool_facts() -> dict[str, object]:
    """Returns JSON-ready facts by name, without unavailable ones.

    `blas_pools` has one entry per thread pool in this process: {"api": "blas" or "openmp", "library", "threads",
    "version"}, without the library's path. `torch_blas` is the library that torch was built with.

    Visits all loaded libraries, which takes some milliseconds: call it once. May raise what threadpoolctl raises.
    """
    from threadpoolctl import threadpool_info

    pools = [
        {
            "api": _short(pool.get("user_api")),
            "library": _short(pool.get("internal_api")),
            "threads": int(pool.get("num_threads") or 0),
            "version": _short(pool.get("version")),
        }
        for pool in threadpool_info()
    ]
    facts: dict[str, object] = {"blas_pools": pools} if pools else {}
    torch = sys.modules.get("torch")
    if torch is not None:
        match = re.search(r"\bBLAS_INFO=(\w+)", torch.__config__.show())
        if match:
            facts["torch_blas"] = match[1]
    return facts


def _short(value: object) -> str:
    return str(value)[:_MAX_LENGTH] if value else "unknown"
