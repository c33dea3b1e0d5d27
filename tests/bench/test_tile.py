"""A repeated recording is as valid as the original: no overlaps, no duplicate links, consecutive steps."""

import gzip
import json

from bench.tile import GAP_US, tile
from helpers.draw import drawn


def events_of(path):
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def test_repetitions_follow_each_other_and_share_no_id(tmp_path):
    source, target = tmp_path / "one.json", tmp_path / "three.json.gz"
    trace = drawn("step aaabbb\nop ##.##.\ngpu .ab.ab", 1000)
    trace["traceEvents"].append({"ph": "X", "name": "unlinked", "ts": 1.5, "dur": 1, "args": {"External id": 0}})
    trace["tail"] = {"id": 7, "ts": 8}
    source.write_text(json.dumps(trace, indent=1))
    size = tile(source, target, 3)
    one, three = trace["traceEvents"], events_of(target)
    assert size == len(gzip.decompress(target.read_bytes()))
    assert three[: len(one)] == one
    assert len(three) == 3 * len(one)
    begins = [min(event["ts"] for event in part) for part in (three[: len(one)], three[len(one) : 2 * len(one)])]
    assert begins[1] >= max(event["ts"] + event["dur"] for event in one if event["ph"] == "X") + GAP_US - 1
    steps = [event["name"] for event in three if event["name"].startswith("ProfilerStep")]
    assert steps == [f"ProfilerStep#{number}" for number in range(6)]
    linked = [event["args"]["correlation"] for event in three if event.get("cat") == "kernel"]
    assert len(linked) == len(set(linked)) == 3 * 4
    assert {event["args"]["External id"] for event in three if event["name"] == "unlinked"} == {0}
    assert json.loads(gzip.decompress(target.read_bytes()))["tail"] == {"id": 7, "ts": 8}
