"""A fixture for plugins that are closed after the test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.plugin.tenant import Tenant


@pytest.fixture
def move_in() -> Iterator[Callable[..., Tenant]]:
    """Returns a function that creates a `Tenant`."""
    with ExitStack() as leases:

        def make(*arguments: object, **options: object) -> Tenant:
            tenant = Tenant(*arguments, **options)  # type: ignore[arg-type]
            leases.enter_context(closing(tenant.plugin))
            return tenant

        yield make
