"""Finds a function of the user's by its name, `module:function` or `path/to/file.py:function`, and calls it."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tb_bottleneck.errors import NotFound, Unusable

_MOST_NAMES = 8


def call_factory(factory: str) -> object:
    """What the function returns.

    The file's folder, or the current one, joins the front of `sys.path`, so that worker processes that start anew can
    import what the function gave. Raises NotFound where there is no such function, Unusable where the user's code
    raises.
    """
    where, _, name = factory.rpartition(":")
    if not where or not name:
        raise NotFound(f"{factory!r} is not of the form module:function or file.py:function")
    module = _of_file(Path(where)) if where.endswith(".py") else _of_name(where)
    function = getattr(module, name, None)
    if not callable(function):
        raise NotFound(f"{where} has no function {name!r}; {_what_there_is(module)}")
    return _run(f"{factory}()", function)


def _of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFound(f"no such file: {path}")
    loaded = sys.modules.get(path.stem)
    if loaded is not None and Path(str(getattr(loaded, "__file__", ""))).resolve() != path.resolve():
        raise NotFound(f"{path} has the name of a module that is already loaded, {path.stem!r}: give the file another")
    return _imported(path.stem, path.resolve().parent)


def _of_name(name: str) -> ModuleType:
    return _imported(name, Path.cwd())


def _imported(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return _run(f"importing {name}", lambda: importlib.import_module(name))
    except Unusable as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and f"{name}.".startswith(f"{cause.name}."):
            raise NotFound(
                f"no module named {cause.name!r}; looked in {folder} and in the installed packages"
            ) from None
        raise


def _run(what: str, function: Callable[[], ModuleType]) -> ModuleType:
    try:
        return function()
    except Exception as error:  # the border to the user's own code
        raise Unusable(f"{what} raised {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """An exception as one line for people: its kind, and the last line that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = "".join(character for character in (lines[-1] if lines else "") if character.isprintable())[:300]
    kind = type(error).__name__
    if not said or said.startswith(f"{kind}:"):  # what a worker raised ends in the words of its own traceback
        return said or kind
    return f"{kind}: {said}"


def _what_there_is(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    own = [name for name in names if getattr(getattr(module, name), "__module__", "") == module.__name__]
    return f"it has {', '.join(own[:_MOST_NAMES])}" if own else "it defines none"
