"""Snapshots are read as pickle's own reader reads them, and as JSON; damaged ones raise only our own errors."""

import contextlib
import copyreg
import gzip
import io
import json
import os
import pickle
import random
import re
import sys
from pathlib import Path

import pytest
from helpers.little_memory import little_memory
from helpers.snapshots import block, frame, random_snapshot, segment

import tb_bottleneck
from tb_bottleneck.base.errors import BottleneckError, NotFound, TooLarge, Unreadable, Unusable
from tb_bottleneck.sources.snapshot.allocator_snapshot import AllocatorSnapshot, read_snapshot, snapshot_in
from tb_bottleneck.sources.snapshot.snapshot_columns import ACTIONS, MOST_BYTES, MOST_US

CASES = int(os.environ.get("TB_BOTTLENECK_FUZZ", "40"))


def read(data: bytes) -> AllocatorSnapshot:
    return snapshot_in(io.BytesIO(data))


def read_limited(path: Path, data: bytes) -> AllocatorSnapshot:
    """Reads `data` as the program does: from a file, in a process of its own."""
    path.write_bytes(data)
    return read_snapshot(str(path))


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


CONSTRUCTS = [
    b"cos\nsystem\n(X\x04\x00\x00\x00truetR.", b"\x8c\x02os\x8c\x06system\x93.", b"(ios\nsystem\n.", b"(o.", b"}}b.",
    b"P1\n.", b"\x82\x01.", b"\x83\x01\x00.", b"\x84\x01\x00\x00\x00.", b"]Q.", b"))\x81.", b")})\x92.", b"\x97.",
    b"]\x98.", b"))R.", b"}\x8c\x03abc}}\x87b.", b"(\x8c\x02os\x8c\x06systemo.", b"cbuiltins\neval\n\x8c\x011\x85R.",
]  # fmt: skip


@pytest.mark.parametrize("data", CONSTRUCTS)
def test_every_opcode_that_could_construct_something_is_refused(data):
    for header in (b"\x80\x02", b"\x80\x05"):
        with pytest.raises(Unreadable):
            read(header + data)


def test_extensions_that_a_program_registered_are_refused(monkeypatch):
    monkeypatch.setitem(copyreg._inverted_registry, 1, ("os", "system"))
    monkeypatch.setitem(copyreg._extension_registry, ("os", "system"), 1)
    with pytest.raises(Unreadable, match="can execute code"):
        read(b"\x80\x02\x82\x01.")


def test_the_package_loads_no_other_pickles():
    for path in Path(tb_bottleneck.__file__).parent.rglob("*.py"):
        found = re.findall(r"pickle\.loads?\(|\bUnpickler\b", path.read_text(encoding="utf-8"))
        assert found == (["Unpickler"] if path.name == "plain_pickle.py" else []), path


# --- Limits ---


@pytest.fixture
def limited():
    pytest.importorskip("resource")
    with little_memory():
        yield


HUNGRY = {
    "a memo of 2^32 values": b"\x80\x04]r\xff\xff\xff\xff.",
    "many lists": b"\x80\x04(" + b"]" * 30_000_000 + b"l.",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the address space")
@pytest.mark.parametrize("name", HUNGRY)
def test_files_that_ask_for_more_memory_than_the_limit_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TB_BOTTLENECK_MEMORY_GIB", "1")
    with pytest.raises(TooLarge, match=r"more than 1 GiB.*TB_BOTTLENECK_MEMORY_GIB"):
        read_limited(tmp_path / "a.pickle", HUNGRY[name])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the time")
def test_a_file_that_takes_too_long_is_refused(tmp_path, monkeypatch):
    """The keys of the dict have equal hashes, so that each one is compared with all earlier ones."""
    keys = (number * (2**61 - 1) for number in range(60_000))
    data = b"\x80\x04}(" + b"".join(b"\x8a\x0a" + key.to_bytes(10, "little") + b"K\x00" for key in keys) + b"u."
    monkeypatch.setenv("TB_BOTTLENECK_SECONDS_PER_FILE", "1")
    with pytest.raises(TooLarge, match="took more than 1 s"):
        read_limited(tmp_path / "a.pickle", data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04\x8d" + (1 << 40).to_bytes(8, "little"),  # a string of a terabyte
        b"\x80\x04X" + (1 << 31).to_bytes(4, "little"),
        b"\x80\x04\x8b" + (1 << 30).to_bytes(4, "little"),  # an integer of a gigabyte
        b"\x80\x04" + b"](" * 100_000 + b"e" * 100_000 + b".",
    ],
)
def test_small_files_that_claim_much_are_refused(data, limited):
    with pytest.raises((Unreadable, MemoryError)):
        read(data)


def test_what_follows_a_pickle_does_not_hold_the_reader_up(tmp_path):
    """The other process stops reading at the end of the pickle, and has an answer that fills a pipe."""
    data = pickle.dumps(random_snapshot(20_000)) + b"x" * (4 << 20)
    assert len(read_limited(tmp_path / "a.pickle", data).entries["size"]) >= 20_000


@pytest.mark.parametrize("value", [1 << 70, "\ud800", "long" * 1000])
def test_odd_settings_cost_nothing_else(tmp_path, value):
    raw = random_snapshot(50) | {"allocator_settings": {"odd": value, "backend": "native"}}
    snapshot = read_limited(tmp_path / "a.pickle", pickle.dumps(raw))
    assert snapshot.settings["backend"] == "native"
    assert len(str(snapshot.settings["odd"])) <= 500


def test_a_limit_that_is_no_number_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TB_BOTTLENECK_MEMORY_GIB", "much")
    with pytest.raises(Unusable, match="TB_BOTTLENECK_MEMORY_GIB is 'much'"):
        read_limited(tmp_path / "a.pickle", pickle.dumps(random_snapshot(5)))


def test_errors_come_from_the_other_process(tmp_path):
    with pytest.raises(Unreadable, match=r"names the Python object 'posix\.mkdir'"):
        read_limited(tmp_path / "a.pickle", pickle.dumps(Attack(tmp_path / "harm")))
    with pytest.raises(Unreadable, match="ends early"):
        read_limited(tmp_path / "b.pickle", pickle.dumps(random_snapshot(50), 2)[:-50])
    assert not (tmp_path / "harm").exists()


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
def test_other_files_are_unreadable(data, tmp_path):
    with pytest.raises(Unreadable):
        read_limited(tmp_path / "a.pickle", data)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        read_snapshot(str(tmp_path / "none.pickle"))


# --- Damage ---


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("form", ["pickle2", "pickle4", "json"])
def test_damaged_snapshots_raise_only_our_errors(seed, form, limited):
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
    with contextlib.suppress(BottleneckError, MemoryError):
        read(bytes(data))
