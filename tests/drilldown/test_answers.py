"""Questions and answers, as the process for questions gives them."""

import gzip
import json

import pytest
from draw import drawn

from tb_bottleneck.drilldown import answers
from tb_bottleneck.drilldown.answers import TraceCache, answer
from tb_bottleneck.errors import NotFound

RUN = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ....##........##....
    launch  ....|.........|.....
    gpu     .....#####.....#####
"""


@pytest.fixture
def question(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(drawn(RUN)))
    path = str(tmp_path / "t.json")
    return {"ask": "timeline", "id": "x", "path": path, "mtime_ns": 1.0, "begin": None, "end": None, "pixels": 100.0}


def test_each_question_has_its_answer(question):
    for ask in ("timeline", "tables"):
        found = json.loads(answer({**question, "ask": ask}))
        assert (found["id"], found["state"]) == ("x", "done")
        assert found[ask]
    assert json.loads(gzip.decompress(answer({**question, "ask": "slice"})))["traceEvents"]


def test_a_file_that_is_gone_is_an_answer(question):
    found = json.loads(answer({**question, "path": question["path"] + ".gone"}))
    assert found["state"] == "failed"
    assert "gone" in found["problem"]
    with pytest.raises(NotFound):
        answer({**question, "ask": "slice", "path": question["path"] + ".gone"})


def test_a_recording_stays_read_until_others_take_its_place(question, tmp_path, monkeypatch):
    read = []
    real = answers.load
    monkeypatch.setattr(answers, "load", lambda path, progress: read.append(path) or real(path, progress))
    monkeypatch.setattr(answers, "KEPT_EVENTS", 20)
    shelf = TraceCache()
    for name in ("a", "b", "c", "a"):
        (tmp_path / name).write_text(json.dumps(drawn(RUN)))
        shelf.case(str(tmp_path / name), 1, None)
        shelf.case(str(tmp_path / name), 1, None)
    assert [path[-1] for path in read] == ["a", "b", "c", "a"]
