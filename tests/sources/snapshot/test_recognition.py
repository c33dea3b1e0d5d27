"""Snapshots in a logdir are found by their first bytes; other pickles are left alone, and nothing is decoded."""

import gzip
import json
import pickle

import pytest
from helpers.snapshots import BASE, block, random_snapshot, segment

from tb_bottleneck.sources.logdir import scan
from tb_bottleneck.sources.snapshot import is_snapshot

RAW = random_snapshot(20)
SNAPSHOTS = {
    "a.pickle": pickle.dumps(RAW, 4),
    "b.pkl": pickle.dumps(RAW, 2),
    "c.pickle.gz": gzip.compress(pickle.dumps(RAW)),
    "d.json": json.dumps(RAW).encode(),
    "e.json": json.dumps([segment(BASE, [block(512)])]).encode(),
    "f.pickle": pickle.dumps([segment(BASE, [block(512)])]),
}
OTHERS = {
    "weights.pickle": pickle.dumps({"weight": [1, 2]}),
    "text.pkl": b"segments",
    "empty.pickle": b"",
    "config.json": b'{"name": "segments"}',
    "x.pt.trace.json.bottlenecks.json": b'{"segments": []}',
}


def test_a_directory_lists_its_snapshots_and_no_other_pickle(tmp_path):
    for name, data in {**SNAPSHOTS, **OTHERS}.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "t.pt.trace.json").write_text('{"traceEvents": []}')
    found = {recording.source: recording for recording in scan(str(tmp_path)).recordings}
    assert set(found) == {*SNAPSHOTS, "t.pt.trace.json"}
    assert all(found[name].is_snapshot and not found[name].is_trace for name in SNAPSHOTS)
    assert found["t.pt.trace.json"].is_trace


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_named_snapshot_is_recognised(tmp_path, name):
    (tmp_path / name).write_bytes(SNAPSHOTS[name])
    assert is_snapshot(str(tmp_path / name))
    assert scan(str(tmp_path / name)).recordings[0].is_snapshot


def test_traces_and_missing_files_are_no_snapshots(tmp_path):
    (tmp_path / "trace.json").write_text('{"traceEvents": [], "segments": []}')
    assert not is_snapshot(str(tmp_path / "trace.json"))
    assert not is_snapshot(str(tmp_path / "none.json"))
