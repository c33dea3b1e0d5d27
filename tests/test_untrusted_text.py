"""Text that others wrote: one line, nothing that controls a terminal, no markup in Markdown."""

import pytest
from google.protobuf import json_format

from tb_bottleneck.base.text import markdown, one_line
from tb_bottleneck.report.rendering.figures import as_json
from tb_bottleneck.schema.bottleneck_pb2 import Device, Report

HOSTILE = "a\x1b]0;owned\x07\x9b2J\r\nb\u202ec\u2028d\x00\ue000"


def test_controls_are_removed_and_white_space_is_a_space() -> None:
    assert one_line(HOSTILE) == "a]0;owned2J  bc d"
    assert one_line("aten::add  é") == "aten::add  é"
    assert one_line(7) == "7"


def test_long_text_is_cut() -> None:
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


@pytest.mark.parametrize("live", ["@team", "https://evil.example", "www.evil.example", "a/b#12", "GH-7"])
def test_links_and_mentions_are_broken_and_readable(live: str) -> None:
    shown = markdown(live)
    assert live not in shown.replace("\\", "")
    assert shown.replace("\u200b", "").replace("\\", "") == live


def test_markup_is_escaped_and_plain_names_stay() -> None:
    assert markdown("<b>*x*|`y`[z](u)") == r"\<b\>\*x\*\|\`y\`\[z\](u)"
    assert markdown("aten::add (12): f.py") == "aten::add (12): f.py"


def test_json_is_safe_to_print_and_means_the_same() -> None:
    name = HOSTILE.removesuffix("\ue000")
    text = as_json(Report(device=Device(name=name)))
    assert text.isprintable()
    assert json_format.Parse(text, Report()).device.name == name
