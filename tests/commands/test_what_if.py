"""Tests of `tb-bottleneck what-if`: a prediction as text and as JSON, and the message about an unknown device."""

import json

from comparison.drawn_runs import recorded, repeated

from tb_bottleneck.__main__ import main

DRAWING = repeated(9, loader="######....", gpu="......####")


def test_a_device(tmp_path, capsys):
    assert main(["what-if", recorded(tmp_path, DRAWING), "--device", "NVIDIA H200"]) == 0
    assert "H200" in capsys.readouterr().out


def test_the_json_is_one_object(tmp_path, capsys):
    assert main(["what-if", recorded(tmp_path, DRAWING), "--device", "h200", "--workers", "4", "--json"]) == 0
    prediction = json.loads(capsys.readouterr().out)
    assert prediction["after"]["low"] <= prediction["after"]["speedup"] <= prediction["after"]["high"]
    assert len(prediction["changes"]) == 2


def test_an_unknown_device_is_2_and_names_near_ones(tmp_path, capsys):
    assert main(["what-if", recorded(tmp_path, DRAWING), "--device", "RTX 40900"]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_without_a_change_a_table_of_the_usual_ones_is_printed(tmp_path, capsys):
    path = recorded(tmp_path, DRAWING)
    status = main(["what-if", path])
    text = capsys.readouterr().out
    assert "under other conditions" in " ".join(text.split())
    main(["what-if", path, "--json"])
    table = json.loads(capsys.readouterr().out)
    assert status == int(not table["rows"])
    assert all(row["title"] in text for row in table["rows"])


def test_an_unknown_link_is_2_and_one_line(tmp_path, capsys):
    """It was a report without a prediction and status 0."""
    assert main(["what-if", recorded(tmp_path, DRAWING), "--link", "gen9"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "'gen9' is not a known link; write it as in gen4x16, with a generation from 3 to" in err


def test_a_file_that_cannot_be_read_is_1(tmp_path, capsys):
    broken = tmp_path / "broken.pt.trace.json"
    broken.write_text("no trace")
    assert main(["what-if", str(broken), "--workers", "4"]) == 1
    assert main(["compare", str(broken), str(broken)]) == 1
    assert "No comparison" in capsys.readouterr().out


def test_no_prediction_is_1_and_says_why(tmp_path, capsys):
    """A script would take status 0 for an answer. Here, nothing shows who makes the batches."""
    trace = recorded(tmp_path, repeated(9, op="######....", gpu="......####"))
    for form in ([], ["--json"]):
        assert main(["what-if", trace, "--workers", "4", *form]) == 1
    out = capsys.readouterr().out
    assert out.count("No prediction: ") == 2
