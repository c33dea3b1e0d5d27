"""The text is what a person reads in a terminal: the answer first, then why, then what to do."""

import json

from draw import drawn

from tb_bottleneck.diagnosis import diagnose
from tb_bottleneck.report.text import render


def text_of(tmp_path, drawing, **header):
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(drawn(drawing, 1000, **header)))
    return render(diagnose(str(path)))


def test_the_answer_comes_first_and_the_cure_is_code(tmp_path):
    text = text_of(
        tmp_path,
        """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        loader  ####......####......####......
        gpu     ....aabbcc....aabbcc....aabbcc
    """,
    )
    lines = text.splitlines()
    assert lines[0] == "run.pt.trace.json"
    assert lines[2] == "The GPU waits for the next batch during 40 % of each step."
    assert "       DataLoader(dataset, batch_size=..., num_workers=1" in text
    assert "at stake: 40 % of the time; 1.64x faster (" in text
    assert "What to change first" in text
    assert "  Waiting for data    40 %    4.00 ms  ████████████" in text


def test_what_cannot_be_told_says_why_and_what_mends_it(tmp_path):
    text = text_of(tmp_path, "step aaaa\nop ####")
    assert "Cannot tell, because the recording does not allow a verdict." in text
    assert "[insufficient_data]" in text
    assert "mend:" in text
