"""Snapshots are read as pickle's own reader reads them, and as JSON; damaged ones raise only our own errors."""

import contextlib
import gzip
import json
import os
import pickle
import pickletools
import random
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.snapshots import block, frame, random_snapshot, segment

import tb_bottleneck
from tb_bottleneck.base.errors import BottleneckError, NotFound, TooLarge, Unreadable
from tb_bottleneck.sources.snapshot import plain_pickle
from tb_bottleneck.sources.snapshot.allocator_snapshot import AllocatorSnapshot, read_snapshot, snapshot_of
from tb_bottleneck.sources.snapshot.memo import FORBIDDEN, PickleLimits
from tb_bottleneck.sources.snapshot.snapshot_columns import ACTIONS, MOST_BYTES, MOST_US, SnapshotColumns

CASES = int(os.environ.get("TB_BOTTLENECK_FUZZ", "40"))


def read(data: bytes, block_size: int = 1000, **limits) -> AllocatorSnapshot:
    parts = (data[at : at + block_size] for at in range(0, len(data), block_size))
    return snapshot_of(parts, PickleLimits(**limits))


def entries_of(snapshot: AllocatorSnapshot) -> list[tuple]:
    columns = snapshot.entries
    names = ("device", "action", "address", "size", "time_us", "stack")
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    return [
        (device, ACTIONS[action], *rest, tuple((it.file, it.line, it.function) for it in snapshot.frames_of(stack)))
        for device, action, *rest, stack in rows
    ]


def expected_entries(raw: dict) -> list[tuple]:
    return [
        (
            device,
            *(entry[key] for key in ("action", "addr", "size", "time_us")),
            tuple((it["filename"], it["line"], it["name"]) for it in entry["frames"]),
        )
        for device, entries in enumerate(raw["device_traces"])
        for entry in entries
    ]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("devices", [1, 3])
def test_pickles_of_all_protocols_are_read(protocol, devices):
    raw = random_snapshot(1500, seed=protocol, devices=devices)
    snapshot = read(pickle.dumps(raw, protocol=protocol))
    assert entries_of(snapshot) == expected_entries(raw)
    assert snapshot.segments["total"].tolist() == [it["total_size"] for it in raw["segments"]]
    assert snapshot.blocks["size"].tolist() == [it["size"] for seg in raw["segments"] for it in seg["blocks"]]
    assert snapshot.settings == {"expandable_segments": False}
    assert [it.name for it in snapshot.annotations] == ["Optimizer.step#AdamW.step"]


@pytest.mark.parametrize("block_size", [7, 100, 1 << 20])
def test_the_size_of_the_blocks_does_not_matter(block_size):
    raw = random_snapshot(400)
    assert entries_of(read(pickle.dumps(raw, 4), block_size)) == expected_entries(raw)


def test_json_and_gzip_are_read(tmp_path):
    raw = random_snapshot(300)
    for name, data in (("a.json", json.dumps(raw).encode()), ("b.pickle.gz", gzip.compress(pickle.dumps(raw)))):
        (tmp_path / name).write_bytes(data)
        assert entries_of(read_snapshot(str(tmp_path / name))) == expected_entries(raw)


def test_a_list_of_segments_is_a_snapshot():
    snapshot = read(pickle.dumps([segment(1 << 40, [block(512), block(1024, state="inactive")])]))
    assert snapshot.blocks["size"].tolist() == [512, 1024]
    assert snapshot.blocks["state"].tolist() == [1, 0]


def test_entries_with_other_keys_in_between_keep_their_order():
    raw = random_snapshot(200)
    odd = {"action": "oom", "device_free": 5, "size": 1 << 30, "stream": 0, "time_us": 3, "frames": []}
    entries = raw["device_traces"][0]
    for at in (150, 77, 3):
        entries.insert(at, dict(odd))
    entries[50] = {**entries[50], "user_metadata": "a new text"}
    sizes = read(pickle.dumps(raw, 4)).entries["size"].tolist()
    assert sizes == [entry["size"] for entry in entries]


def test_most_entries_are_read_in_runs(monkeypatch):
    """Opcode by opcode, a snapshot of 1 GB would take an hour."""
    single, take = [], SnapshotColumns.take

    def counted(columns, path, group, items):
        single.extend(item for item in items if type(item) is dict and "action" in item)
        return take(columns, path, group, items)

    monkeypatch.setattr(SnapshotColumns, "take", counted)
    assert len(read(pickle.dumps(random_snapshot(5_000), 4), 1 << 20).entries["size"]) >= 5_000
    assert len(single) < 250


@pytest.mark.parametrize("value", [0, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**40 + 3, 2**47 + 129, 2**62 - 1])
def test_integers_of_all_widths_are_read(value):
    raw = random_snapshot(50)
    for entry in raw["device_traces"][0]:
        entry["stream"] = value
    assert set(read(pickle.dumps(raw, 4)).entries["stream"].tolist()) == {value}


@pytest.mark.parametrize(("value", "kept"), [((1 << 62) - 1, MOST_US), (-5, 0), (MOST_US - 1, MOST_US - 1)])
def test_impossible_times_and_sizes_are_limited(value, kept):
    raw = random_snapshot(50)
    for entry in raw["device_traces"][0]:
        entry["time_us"] = value
        entry["size"] = value
    entries = read(pickle.dumps(raw, 4)).entries
    assert set(entries["time_us"].tolist()) == {kept}
    assert set(entries["size"].tolist()) == {min(max(value, 0), MOST_BYTES)}


def test_addresses_with_the_highest_bit_stay_different():
    raw = random_snapshot(40)
    for number, entry in enumerate(raw["device_traces"][0]):
        entry["addr"] = 0xFFFF800000000000 + 512 * number
    addresses = read(pickle.dumps(raw, 4)).entries["address"]
    assert addresses.tolist() == [-(1 << 47) + 512 * number for number in range(len(addresses))]


# --- Nothing is executed ---


class Attack:
    """Its pickle calls a function."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("place", ["alone", "entry", "frames", "key"])
def test_a_malicious_pickle_has_no_effect(tmp_path, protocol, place):
    harm = tmp_path / "harm"
    raw = random_snapshot(1200)
    if place == "entry":
        raw["device_traces"][0][1100]["user_metadata"] = Attack(harm)
    elif place == "frames":
        raw["segments"][0]["blocks"][0]["frames"] = [Attack(harm)]
    elif place == "key":
        raw["allocator_settings"]["x"] = {"y": [Attack(harm)]}
    data = pickle.dumps(Attack(harm) if place == "alone" else raw, protocol=protocol)
    with pytest.raises(Unreadable, match="can execute code"):
        read(data)
    assert not harm.exists()
    pickle.loads(data)
    assert harm.exists()  # the attack works where a pickle is loaded


GLOBALS = [
    b"cos\nsystem\n(X\x04\x00\x00\x00truetR.", b"\x8c\x02os\x8c\x06system\x93.", b"(ios\nsystem\n.", b"(o.", b"}}b.",
    b"P1\n.", b"\x82\x01.", b"\x83\x01\x00.", b"\x84\x01\x00\x00\x00.", b"]Q.", b"))\x81.", b")})\x92.", b"\x97.",
    b"]\x98.", b"))R.",
]  # fmt: skip


@pytest.mark.parametrize("data", GLOBALS)
def test_every_opcode_that_could_construct_something_is_refused(data):
    with pytest.raises(Unreadable, match="can execute code"):
        read(b"\x80\x04" + data)


def test_every_opcode_of_python_is_either_plain_data_or_refused():
    """A new opcode of a later Python is refused too, since it is unknown."""
    known = {opcode.code.encode("latin1") for opcode in pickletools.opcodes}
    assert set(FORBIDDEN) <= known
    allowed = {bytes([code]) for code in plain_pickle._actions()} | {b"."}
    constructs = {opcode.code.encode("latin1") for opcode in pickletools.opcodes if opcode.name in EXECUTE}
    assert not allowed & constructs
    assert constructs <= set(FORBIDDEN)


EXECUTE = {
    "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID",
    "BINPERSID",
}  # fmt: skip


def test_the_package_does_not_load_pickles():
    for path in Path(tb_bottleneck.__file__).parent.rglob("*.py"):
        assert not re.search(r"pickle\.loads?\(|\bUnpickler\(", path.read_text(encoding="utf-8")), path


# --- Limits ---


def test_deep_nesting_is_refused():
    with pytest.raises(TooLarge):
        read(b"\x80\x04" + b"](" * 1000 + b"e" * 1000 + b".")


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04\x8d" + (1 << 40).to_bytes(8, "little"),  # a string of a terabyte
        b"\x80\x04X" + (1 << 31).to_bytes(4, "little"),
        b"\x80\x04\x8b" + (1 << 30).to_bytes(4, "little"),  # an integer of a gigabyte
        b"\x80\x04]r\xff\xff\xff\x0f.",  # a memo of 2^28 entries
        b"\x80\x04" + b"K\x01" * 500,
        b"\x80\x04" + b"]\x94" * 200 + b".",
    ],
)
def test_small_files_that_ask_for_much_are_refused(data):
    with pytest.raises(TooLarge):
        read(data, stack=400, objects=100)


def test_shared_lists_are_not_walked():
    shared: list = []
    for _ in range(20):
        shared = [shared, shared]
    raw = {"segments": [], "device_traces": [[{"action": "alloc", "frames": shared, "size": 512, "addr": 1}]]}
    assert read(pickle.dumps(raw)).entries["size"].tolist() == [512]


def test_a_list_that_contains_itself_is_no_stack():
    loop: list = []
    loop.append(loop)
    raw = {"segments": [], "device_traces": [[{"action": "alloc", "frames": loop, "size": 512, "addr": 1}]]}
    assert len(read(pickle.dumps(raw)).entries["size"]) == 1


@pytest.mark.parametrize("data", [b"", b"\x80", b"garbage", b"\x80\x04.", b"\x80\x04}.", b"{", b"[1, 2", b"{}", b"[]"])
def test_other_files_are_unreadable(data):
    with pytest.raises(Unreadable):
        read(data)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        read_snapshot(str(tmp_path / "none.pickle"))


# --- Damage ---


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("form", ["pickle2", "pickle4", "json"])
def test_damaged_snapshots_raise_only_our_errors(seed, form):
    chance = random.Random(seed)
    raw = random_snapshot(60, seed=seed % 5, devices=2)
    raw["segments"].append(segment(1 << 41, [block(512, [frame("a.py", 1, "f")])], pool=(0, 3)))
    data = bytearray(json.dumps(raw).encode() if form == "json" else pickle.dumps(raw, int(form[-1])))
    for _ in range(chance.choice([1, 1, 3, 20])):
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                del data[at : at + chance.choice([1, 2, 50])]
            case 2:
                data[at:at] = bytes(chance.randrange(256) for _ in range(chance.choice([1, 4, 30])))
            case 3:
                data[at] = chance.choice(b"]}()(eust.hjqrK\x8a\x94\x86\x95")
            case _:
                begin = chance.randrange(len(data))
                data[at:at] = data[begin : begin + chance.choice([2, 20, 400])]
    with contextlib.suppress(BottleneckError):
        read(bytes(data))


# --- Memory ---

_MEASURE = """
import resource, sys
from tb_bottleneck.sources.snapshot import plain_pickle
from tb_bottleneck.sources.snapshot.allocator_snapshot import read_snapshot
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = len(read_snapshot(sys.argv[1]).entries["size"])
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(not hasattr(resource, "getrusage"), reason="no resource usage on this system")
def test_a_large_snapshot_is_read_in_less_memory_than_its_size(tmp_path):
    path = tmp_path / "large.pickle"
    path.write_bytes(pickle.dumps(random_snapshot(150_000, depth=36), 4))
    output = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True)
    rows, kilobytes = map(int, output.stdout.split())
    assert rows >= 150_000
    # 56 bytes per entry and the memo, against four times the size of the file with all objects in memory.
    assert kilobytes * 1024 < 1.5 * path.stat().st_size
