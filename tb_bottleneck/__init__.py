"""Tells why a PyTorch training run is slow, what to change first, and how much faster it will be.

Importing this package imports neither torch nor tensorboard; the names below load their room on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_bottleneck.comparison.comparing import compare
    from tb_bottleneck.diagnosis import diagnose
    from tb_bottleneck.monitor.monitor import Monitor

__version__ = "0.1.0"
__all__ = ["Monitor", "__version__", "compare", "diagnose"]


def __getattr__(name: str) -> Any:
    if name == "diagnose":
        from tb_bottleneck.diagnosis import diagnose

        return diagnose
    if name == "compare":
        from tb_bottleneck.comparison.comparing import compare

        return compare
    if name == "Monitor":
        from tb_bottleneck.monitor.monitor import Monitor

        return Monitor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
