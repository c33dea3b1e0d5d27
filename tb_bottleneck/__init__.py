"""Explains why a PyTorch training run is slow, what to change first, and how much faster it will be.

The names in `__all__` are the public Python interface. They are imported on first use, so that importing this package
imports neither torch nor tensorboard.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tb_bottleneck.version import __version__

if TYPE_CHECKING:
    from tb_bottleneck.comparison.compare import compare
    from tb_bottleneck.diagnosis.trace import diagnose
    from tb_bottleneck.monitor.capture.trace_handler import trace_handler
    from tb_bottleneck.monitor.facts.process import as_metadata
    from tb_bottleneck.monitor.monitor import Monitor
    from tb_bottleneck.schema.bottleneck_pb2 import Report
    from tb_bottleneck.text.brief import brief

__all__ = ["Monitor", "__version__", "as_metadata", "brief", "compare", "diagnose", "trace_handler"]

_MODULE_OF = {
    "Monitor": "tb_bottleneck.monitor.monitor",
    "as_metadata": "tb_bottleneck.monitor.facts.process",
    "brief": "tb_bottleneck.text.brief",
    "compare": "tb_bottleneck.comparison.compare",
    "diagnose": "tb_bottleneck.diagnosis.trace",
    "trace_handler": "tb_bottleneck.monitor.capture.trace_handler",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "diagnose":
        from tb_bottleneck.schema.bottleneck_pb2 import Report

        Report._repr_html_ = _html  # type: ignore[attr-defined]  # notebooks call it to show a report
    return getattr(import_module(_MODULE_OF[name]), name)


def _html(report: "Report") -> str:
    from tb_bottleneck.text.html import fragment

    return fragment(report)
