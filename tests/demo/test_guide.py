"""The index that `python -m demo` prints: each problem once, with the address of its slow recording."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from demo import __main__ as command
from demo import serve
from demo.guide import index_lines
from demo.index import read_index
from demo.pairs import PAIRS, RECORDED

URL = "http://localhost:6006/"


def test_every_recorded_problem_has_a_line_and_the_address_of_a_recording() -> None:
    lines = list(index_lines(RECORDED, URL))
    texts, links = lines[::2], lines[1::2]
    names = [line.split(":")[0].strip() for line in texts]
    assert sorted(names) == sorted(read_index(RECORDED)["pairs"])
    assert names[0] == next(iter(PAIRS)), "the most instructive problem comes first"
    assert all("no problem" in text for text in texts[-2:])
    for link in links:
        address, _, key = link.strip().partition("#tb_bottleneck&p.tb_bottleneck.run=")
        assert address == URL
        assert (RECORDED / unquote(key)).is_file()


def test_the_gain_is_the_measured_one() -> None:
    pair = read_index(RECORDED)["pairs"]["checkpointing"]
    (line,) = (line for line in index_lines(RECORDED, URL) if line.startswith("  checkpointing:"))
    assert line.endswith(f"({pair['slow_over_fixed']:.1f}x as fast, measured)")
    assert not any("as fast" in line for line in index_lines(RECORDED, URL) if "no problem" in line)


@pytest.mark.parametrize("is_default", [True, False])
def test_the_address_opens_the_overview(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], is_default: bool
) -> None:
    monkeypatch.setattr(serve, "check_installation", lambda: None)
    monkeypatch.setattr(serve, "start", lambda logdir, host, port: URL)
    monkeypatch.setattr(serve, "wait_for_the_end", lambda: None)
    assert command.main([] if is_default else ["serve", "--logdir", str(tmp_path)]) == 0
    *guide, last = capsys.readouterr().out.splitlines()
    assert last == f"All recordings: {URL}#tb_bottleneck&p.tb_bottleneck.all=all (press Ctrl-C to quit)"
    assert any("loader_in_main_process" in line for line in guide) == is_default
