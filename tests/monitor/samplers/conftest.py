"""A fake machine for each test."""

from pathlib import Path

import pytest
from monitor.samplers.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
