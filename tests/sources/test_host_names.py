"""Names of hosts are hidden in the tab, unless a setting shows them; the hosts can still be told apart."""

import re
from pathlib import Path

import pytest

from tb_bottleneck.sources.file_system import SHOW_VARIABLE, host_of, without_host
from tb_bottleneck.sources.logdir import scan

NAME = "gpu17.corp.example_4711.1764000000000.pt.trace.json.gz"


@pytest.mark.parametrize("time", ["1764000000000", "1764000000000000000"])
def test_the_host_becomes_a_hash_that_is_the_same_in_its_other_recordings(time: str) -> None:
    hidden = without_host(f"gpu17.corp.example_4711.{time}.pt.trace.json.gz", {})
    assert re.fullmatch(rf"host-[0-9a-f]{{6}}_4711\.{time}\.pt\.trace\.json\.gz", hidden)
    assert hidden.partition("_")[0] == without_host(NAME, {}).partition("_")[0]
    assert without_host("other_1.1764000000000.pt.trace.json", {}).partition("_")[0] != hidden.partition("_")[0]
    assert without_host(hidden, {}) == hidden


def test_the_default_name_tells_the_host() -> None:
    assert host_of(NAME) == "gpu17.corp.example"


@pytest.mark.parametrize(
    "name",
    [
        "trace.json",
        "mine.pt.trace.json",
        "rank3_4711.1764000000000000000.pt.trace.json.gz",
        "host_42.1764.pt.trace.json",
    ],
)
def test_names_without_a_host_stay(name: str) -> None:
    assert without_host(name, {}) == name
    assert host_of(name) == ""


def test_a_setting_shows_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).write_bytes(b"")
    (hidden,) = scan(tmp_path).recordings
    assert "gpu17" not in hidden.source
    assert hidden.path.endswith(NAME)
    monkeypatch.setenv(SHOW_VARIABLE, "1")
    (shown,) = scan(tmp_path).recordings
    assert shown.source == NAME
