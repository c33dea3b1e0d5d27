"""The thread pools that numpy, OpenCV and torch compute with on the CPU: facts for the run's context."""

import re
import sys

_LONGEST = 40  # characters of a name or a version that are kept


def thread_pool_facts() -> dict[str, object]:
    """JSON-ready facts by name; what is not loaded, or does not tell, is left out.

    `blas_pools`: one entry for each pool that is loaded into this process: {"api": "blas" or "openmp", "library",
    "threads", "version"}, without the library's path. `torch_blas`: what torch was built with.

    It walks over all loaded libraries, some milliseconds, so ask it once. May raise what threadpoolctl raises.
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
    found: dict[str, object] = {"blas_pools": pools} if pools else {}
    torch = sys.modules.get("torch")
    if torch is not None:
        built = re.search(r"\bBLAS_INFO=(\w+)", torch.__config__.show())
        if built:
            found["torch_blas"] = built[1]
    return found


def _short(value: object) -> str:
    return str(value)[:_LONGEST] if value else "unknown"
