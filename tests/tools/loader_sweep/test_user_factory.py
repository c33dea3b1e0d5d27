"""The user's function is found by name. Errors in the name or in the user's code are reported in one line."""

import sys
from pathlib import Path

import pytest

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.tools.loader_sweep.endless_loaders import call_factory, one_line


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary current directory; modules imported from it are removed afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_by_module_from_the_current_directory(here: Path) -> None:
    write(here / "shop/__init__.py", "")
    write(here / "shop/data.py", "def make(): return 41\n")
    assert call_factory("shop.data:make") == 41


def test_by_file_in_any_directory(here: Path) -> None:
    write(here / "deep/training_data.py", "from beside import answer\ndef make(): return answer\n")
    write(here / "deep/beside.py", "answer = 42\n")
    assert call_factory("deep/training_data.py:make") == 42


def test_for_a_file_without_that_function_its_functions_are_listed(here: Path) -> None:
    write(here / "some_data.py", "from os.path import join\ndef make_train(): ...\ndef make_test(): ...\n")
    with pytest.raises(NotFound, match=r"no function 'make'; it has make_train, make_test$"):
        call_factory("some_data.py:make")


@pytest.mark.parametrize("factory", ["some_data", "some_data:", ":make", "make.py"])
def test_for_a_name_without_a_function_the_form_is_given(here: Path, factory: str) -> None:
    with pytest.raises(NotFound, match="module:function"):
        call_factory(factory)


def test_a_file_that_is_not_there(here: Path) -> None:
    with pytest.raises(NotFound, match=r"no such file: nowhere\.py"):
        call_factory("nowhere.py:make")


def test_a_module_that_is_not_there(here: Path) -> None:
    with pytest.raises(NotFound, match="no module named 'nowhere' in"):
        call_factory("nowhere.data:make")


def test_a_module_that_lacks_one_of_its_own_is_not_taken_for_absent(here: Path) -> None:
    write(here / "needs_more.py", "import surely_not_installed\n")
    with pytest.raises(Unusable, match=r"importing needs_more raised ModuleNotFoundError.*surely_not_installed"):
        call_factory("needs_more:make")


def test_a_file_named_as_a_module_that_is_loaded(here: Path) -> None:
    write(here / "json.py", "def make(): ...\n")
    with pytest.raises(NotFound, match="rename the file"):
        call_factory("json.py:make")


def test_a_function_that_raises(here: Path) -> None:
    write(here / "failing_data.py", "def make(): raise KeyError('no such split')\n")
    with pytest.raises(Unusable, match=r"failing_data.py:make\(\) raised KeyError: 'no such split'"):
        call_factory("failing_data.py:make")


def test_an_exception_in_one_line() -> None:
    assert one_line(ValueError()) == "ValueError"
    assert one_line(ValueError("a\n\nb\n")) == "ValueError: b"
    assert (
        one_line(ValueError("Caught ValueError in DataLoader worker process 0.\nValueError: bad")) == "ValueError: bad"
    )
    assert one_line(ValueError("red \x1b[31m")) == "ValueError: red [31m"
    assert len(one_line(ValueError("x" * 10_000))) < 400
