"""Reports as HTML have the words of the terminal, and nothing of a file becomes markup."""

from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tb_bottleneck import diagnose
from tb_bottleneck.__main__ import main
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text import html

DEMO = Path(__file__).parents[2] / "demo" / "recorded"
TRACE = next((DEMO / "checkpointing" / "slow").rglob("*.pt.trace.json.gz"))
HOSTILE = '<script>alert(1)</script><img src=x onerror="x">\x1b[31m'
VOID = {"meta", "br", "img"}


class Tags(HTMLParser):
    """The elements of a page, which must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def hostile() -> pb.Report:
    place = pb.Place(file=HOSTILE, line=3, function=HOSTILE, share=1.0, exact=True)
    finding = pb.Finding(
        cause="host_python", title=HOSTILE, where=[place], evidence=[pb.Evidence(label=HOSTILE, text=HOSTILE)]
    )
    report = pb.Report(run=HOSTILE, source=HOSTILE, findings=[finding])
    report.verdict.headline = report.verdict.action = report.device.name = HOSTILE
    report.memory.parts.add(title=HOSTILE, bytes=3, share=1)
    report.health.reasons.add(detail=HOSTILE)
    return report


def test_a_report_has_headline_account_and_findings():
    report = diagnose(str(TRACE))
    text = html.fragment(report)
    assert report._repr_html_() == text
    tags = Tags(text)
    assert tags.open == []
    for part in (
        report.verdict.headline,
        max(report.account, key=lambda row: row.share).title,
        report.findings[0].title,
    ):
        assert part in unescape(text)


def test_nothing_of_a_file_becomes_markup():
    text = html.page([hostile()])
    tags = Tags(text)
    assert tags.open == []
    assert not {"script", "img", "link", "iframe"} & set(tags.seen)
    assert not any(name.startswith("on") for name in tags.attributes)
    assert "\x1b" not in text
    assert "http" not in text.replace("https://docs", "")


def test_a_page_has_a_limit(monkeypatch):
    monkeypatch.setattr(html, "MAX_BYTES", 20_000)
    text = html.page([hostile()] * 40)
    assert len(text.encode()) <= 20_000
    assert "more reports do not fit" in text
    assert Tags(text).open == []


@pytest.mark.parametrize("folder", ["", "missing/"])
def test_the_command_writes_the_page(tmp_path, capsys, folder):
    file = tmp_path / f"{folder}report.html"
    status = main(["diagnose", str(TRACE), "--html", str(file)])
    captured = capsys.readouterr()
    assert " confidence: " in captured.out
    assert file.exists() == (not folder)
    assert status == int(bool(folder))
    assert ("cannot be written" in captured.err) == bool(folder)
