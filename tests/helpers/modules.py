"""The modules of packages, for tests that look at all of them."""

import importlib
import pkgutil
from types import ModuleType


def modules_of(*packages: ModuleType) -> list[ModuleType]:
    """Returns all modules below `packages`."""
    found = [each for package in packages for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [importlib.import_module(each.name) for each in found if not each.ispkg]
