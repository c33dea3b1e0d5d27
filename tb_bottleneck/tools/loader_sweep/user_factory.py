"""Imports and calls a function of the user, named `module:function` or `path/to/file.py:function`."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.base.text import one_line as untrusted_line

_MAX_NAMES = 8


def call_factory(factory: str) -> object:
    """Calls the function and returns its result.

    Adds the file's folder, or the current one, to the front of `sys.path`, so that spawned worker processes can import
    the result's classes. Raises NotFound if there is no such function, and Unusable if the user's code raises.
    """
    source, _, name = factory.rpartition(":")
    if not source or not name:
        raise NotFound(f"{factory!r} does not have the form module:function or file.py:function")
    module = _import_file(Path(source)) if source.endswith(".py") else _import(source, Path.cwd())
    function = getattr(module, name, None)
    if not callable(function):
        raise NotFound(f"{source} has no function {name!r}; {_available_functions(module)}")
    return _run(f"{factory}()", function)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFound(f"no such file: {path}")
    loaded = sys.modules.get(path.stem)
    if loaded is not None and Path(str(getattr(loaded, "__file__", ""))).resolve() != path.resolve():
        raise NotFound(f"{path} has the name of a module that is already imported, {path.stem!r}: rename the file")
    return _import(path.stem, path.resolve().parent)


def _import(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return _run(f"importing {name}", lambda: importlib.import_module(name))
    except Unusable as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            raise NotFound(f"no module named {cause.name!r} in {folder} and the installed packages") from None
        raise


def _run(what: str, function: Callable[[], ModuleType]) -> ModuleType:
    try:
        return function()
    except Exception as error:  # the user's code may raise anything
        raise Unusable(f"{what} raised {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Formats an exception as one line: its class, and its last line that is not empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = untrusted_line(lines[-1] if lines else "", 300)
    kind = type(error).__name__
    if not message or message.startswith(f"{kind}:"):  # a worker's exception ends with the text of its traceback
        return message or kind
    return f"{kind}: {message}"


def _available_functions(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    own = [name for name in names if getattr(getattr(module, name), "__module__", "") == module.__name__]
    return f"it has {', '.join(own[:_MAX_NAMES])}" if own else "it defines none"
