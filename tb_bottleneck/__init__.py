"""Tells why a PyTorch training run is slow, what to change first, and how much faster it will be.

Importing this package imports neither torch nor tensorboard; the names below load their room on first use.
"""

from typing import TYPE_CHECKING, Any

from tb_bottleneck.version import __version__

if TYPE_CHECKING:
    from tb_bottleneck.comparison.compare import compare
    from tb_bottleneck.diagnosis.trace import diagnose
    from tb_bottleneck.monitor.monitor import Monitor

__all__ = ["Monitor", "__version__", "compare", "diagnose"]


def __getattr__(name: str) -> Any:
    if name == "diagnose":
        from tb_bottleneck.diagnosis.trace import diagnose

        return diagnose
    if name == "compare":
        from tb_bottleneck.comparison.compare import compare

        return compare
    if name == "Monitor":
        from tb_bottleneck.monitor.monitor import Monitor

        return Monitor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
