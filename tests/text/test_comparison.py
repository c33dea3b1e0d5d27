"""Comparisons, predictions and series as text: everything that they say, in lines that fit."""

import re

from comparison.drawn_runs import H200, context, judged, read, repeated

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.series.run_series import series_of
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.text.comparison import render_comparison, render_series, render_what_if
from tb_bottleneck.text.terminal import Layout

SLOW = repeated(9, loader="######....", gpu="......####")
FAST = repeated(9, workers="#.....", gpu="..####")


def test_a_comparison_shows_the_waterfall_and_its_sum(tmp_path):
    text = render_comparison(compare_runs(judged(tmp_path, SLOW), judged(tmp_path, FAST)))
    assert "Waiting for data" in text
    assert "whole" in text
    assert "Causes found in A and not in B: loader_in_main_process" in text
    assert max(map(len, text.splitlines())) <= 110


def test_an_expected_time_shows_assumptions_and_shortfall(tmp_path):
    text = render_comparison(compare_runs(judged(tmp_path, SLOW), judged(tmp_path, FAST, device=H200)))
    for title in (
        "Expected time of A's work on B's device",
        "Measured minus expected time",
        "Assumed",
        "Environment differences",
    ):
        assert title in text


def test_a_refused_comparison_shows_no_figures(tmp_path):
    text = render_comparison(compare_runs(judged(tmp_path, SLOW), read(tmp_path, "step a\nop #")))
    assert "No comparison" in text
    assert "From A to B" not in text


def test_a_prediction(tmp_path):
    text = render_what_if(what_if(judged(tmp_path, SLOW), WhatIfOptions(device="NVIDIA H200")))
    assert "if it ran on an H200 SXM" in text
    assert "a step would take as long as now" in text
    assert re.search(r" now +then ", text)
    assert "What still costs time after the change" in text


def test_a_series_is_a_curve(tmp_path):
    runs = [
        judged(tmp_path, drawing, tb_bottleneck=context(workers=number))
        for number, drawing in ((1, SLOW), (2, FAST), (4, FAST))
    ]
    text = render_series(series_of(runs))
    assert "workers" in text
    assert text.count("█") > 3


def test_no_line_is_wider_than_80_columns(tmp_path):
    layout = Layout(80)
    slow, fast = judged(tmp_path, SLOW), judged(tmp_path, FAST, device=H200)
    texts = [
        render_comparison(compare_runs(slow, fast), layout),
        render_what_if(what_if(slow, WhatIfOptions(device="NVIDIA H200")), layout),
    ]
    assert max(len(line) for text in texts for line in text.splitlines()) <= 80
