"""The processes that read recordings, as tests find them."""

from collections.abc import Callable
from typing import Any

from tests.plugin.tenant import Tenant

MoveIn = Callable[..., Tenant]


def reason(report: dict[str, Any]) -> dict[str, Any]:
    """Returns the only health reason of an unreadable report."""
    assert report["health"]["status"] == "unreadable"
    assert "verdict" not in report
    (only,) = report["health"]["reasons"]
    assert only["fix"]
    return dict(only)
