"""Tells why a PyTorch training run is slow, what to change first, and how much faster it will be.

Importing this package imports neither torch nor tensorboard; the names below load their room on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_bottleneck.diagnosis import diagnose

__version__ = "0.1.0"
__all__ = ["__version__", "diagnose"]


def __getattr__(name: str) -> Any:
    if name == "diagnose":
        from tb_bottleneck.diagnosis import diagnose

        return diagnose
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
