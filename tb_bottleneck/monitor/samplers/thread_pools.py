"""Facts about the CPU thread pools of numpy, OpenCV and torch."""

_MAX_LENGTH = 40  # characters of a name or version


def thread_pool_facts() -> dict[str, object]:
    """Returns JSON-ready facts by name, without unavailable ones.

    `blas_pools` has one entry per thread pool in this process: {"api": "blas" or "openmp", "library", "threads",
    "version"}, without the library's path.

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
    return {"blas_pools": pools} if pools else {}


def _short(value: object) -> str:
    return str(value)[:_MAX_LENGTH] if value else "unknown"
