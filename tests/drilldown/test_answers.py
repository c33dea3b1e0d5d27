"""Answers to questions about one recording."""

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
        response = json.loads(answer({**question, "ask": ask}))
        assert (response["id"], response["state"]) == ("x", "done")
        assert response[ask]
    assert json.loads(gzip.decompress(answer({**question, "ask": "slice"})))["traceEvents"]


def test_a_file_that_is_gone_is_an_answer(question):
    response = json.loads(answer({**question, "path": question["path"] + ".gone"}))
    assert response["state"] == "failed"
    assert "gone" in response["problem"]
    with pytest.raises(NotFound):
        answer({**question, "ask": "slice", "path": question["path"] + ".gone"})


def test_a_recording_stays_in_memory_until_others_take_its_place(question, tmp_path, monkeypatch):
    read = []
    real = answers.load
    monkeypatch.setattr(answers, "load", lambda path, progress: read.append(path) or real(path, progress))
    monkeypatch.setattr(answers, "MAX_CACHED_EVENTS", 20)
    cache = TraceCache()
    for name in ("a", "b", "c", "a"):
        (tmp_path / name).write_text(json.dumps(drawn(RUN)))
        cache.get(str(tmp_path / name), 1, None)
        cache.get(str(tmp_path / name), 1, None)
    assert [path[-1] for path in read] == ["a", "b", "c", "a"]
