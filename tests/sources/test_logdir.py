"""The logdir scan: recordings, run names, and errors during the walk."""

import gzip
import os
from pathlib import Path

import pytest

from tb_bottleneck.sources import logdir
from tb_bottleneck.sources.logdir import Listing, Root, natural, parse_logdir_spec, scan, scan_all
from tb_bottleneck.sources.paths import first_bytes

TRACE = '{"schemaVersion": 1, "traceEvents": []}'


def put(path: Path, content: str | bytes = TRACE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def names(listing: Listing) -> list[str]:
    """Returns run and source of each recording, in the listing's order."""
    return [f"{recording.run} {recording.source}" for recording in listing.recordings]


def test_a_run_is_the_directory_relative_to_the_logdir(tmp_path: Path) -> None:
    put(tmp_path / "b" / "slow" / "h_1.7.pt.trace.json")
    put(tmp_path / "b" / "slow" / "h_1.3.pt.trace.json.gz")
    put(tmp_path / "h_1.1.pt.trace.json")
    put(tmp_path / "a" / "trace.json")
    found = scan(tmp_path)
    assert names(found) == [
        ". h_1.1.pt.trace.json",
        "a trace.json",
        "b/slow h_1.3.pt.trace.json.gz",
        "b/slow h_1.7.pt.trace.json",
    ]
    assert found.problems == ()


def test_a_recording_has_the_identity_of_its_file(tmp_path: Path) -> None:
    path = put(tmp_path / "t.pt.trace.json")
    (found,) = scan(tmp_path).recordings
    status = path.stat()
    assert (found.path, found.size, found.mtime_ns) == (str(path.resolve()), status.st_size, status.st_mtime_ns)
    put(path, TRACE + " ")
    assert scan(tmp_path).recordings != (found,)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.trace", "t.trace.gz"])
@pytest.mark.parametrize(
    "content",
    [
        TRACE,
        '{"schemaVersion": 1, "deviceProperties": [' + " " * 100_000 + '], "traceEvents": []}',
        '[\n {"name": "a", "ph": "X"}]',
        '[{"ph":"X"}]',
    ],
)
def test_json_that_looks_like_a_trace_is_taken(tmp_path: Path, name: str, content: str) -> None:
    put(tmp_path / name, content)
    assert names(scan(tmp_path)) == [f". {name}"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", '{"lr": 0.1}'),
        ("list.json", '[{"name": "not an event"}]'),
        ("numbers.json", "[1, 2, 3]"),
        ("far.json", '{"x": "' + " " * logdir.SNIFFED_BYTES + '", "traceEvents": []}'),
        ("empty.json", ""),
        ("binary.trace", b"\x00\xff"),
        ("t.json.tmp", TRACE),
        ("t.pt.trace.json.tmp", TRACE),
        ("trace.txt", TRACE),
        ("events.out.tfevents.1", TRACE),
        ("t.pt.trace.json.bottlenecks.json", TRACE),
        ("t.pt.trace.json.gz.bottlenecks.json", TRACE),
    ],
)
def test_other_files_are_no_recordings(tmp_path: Path, name: str, content: str | bytes) -> None:
    put(tmp_path / name, content)
    assert scan(tmp_path) == Listing((), ())


def test_what_the_profiler_named_is_taken_unread(tmp_path: Path) -> None:
    """A trace that is being written is still empty, but must be listed."""
    (tmp_path / "h_1.1.pt.trace.json.gz").write_bytes(b"")
    assert names(scan(tmp_path)) == [". h_1.1.pt.trace.json.gz"]


def test_a_gzip_file_that_ends_early_is_recognised_by_its_beginning(tmp_path: Path) -> None:
    whole = gzip.compress((TRACE + os.urandom(9000).hex()).encode())
    (tmp_path / "t.json.gz").write_bytes(whole[:4000])
    (tmp_path / "broken.json.gz").write_bytes(b"\x1f\x8b" + b"\xff" * 50)
    assert names(scan(tmp_path)) == [". t.json.gz"]


def test_a_gzip_bomb_is_inflated_no_further_than_it_is_sniffed(tmp_path: Path) -> None:
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 50_000_000))
    assert len(first_bytes(str(tmp_path / "bomb.json.gz"), logdir.SNIFFED_BYTES)) == logdir.SNIFFED_BYTES


def test_an_unchanged_file_is_sniffed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "t.json")
    read: list[str] = []
    monkeypatch.setattr(logdir, "first_bytes", lambda path, count: read.append(path) or first_bytes(path, count))
    for _ in range(3):
        scan(tmp_path)
    assert len(read) == 1
    put(path, TRACE + " ")
    scan(tmp_path)
    assert len(read) == 2


def test_a_file_is_a_recording_by_itself_whatever_it_is_called(tmp_path: Path) -> None:
    path = put(tmp_path / "sub" / "export.bin", "anything")
    assert names(scan(path)) == [". export.bin"]


def test_links_are_followed_and_each_directory_is_entered_once(tmp_path: Path) -> None:
    """latest -> run5 must not hide run5, and a link to the top must not cause an endless walk."""
    put(tmp_path / "run5" / "t.pt.trace.json")
    (tmp_path / "latest").symlink_to(tmp_path / "run5")
    (tmp_path / "run5" / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    (tmp_path / "circle.json").symlink_to(tmp_path / "circle.json")
    (tmp_path / "best.pt.trace.json").symlink_to("run5/t.pt.trace.json")
    found = scan(tmp_path)
    assert names(found) == [". best.pt.trace.json", "run5 t.pt.trace.json"]
    assert {recording.path for recording in found.recordings} == {str(tmp_path.resolve() / "run5/t.pt.trace.json")}
    assert found.problems == ()


def test_links_to_outside_are_skipped_and_listed_with_the_setting_that_follows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, elsewhere = tmp_path / "top", tmp_path / "topper"
    put(top / "t.pt.trace.json")
    put(elsewhere / "inner" / "t.pt.trace.json")
    (top / "linked").symlink_to(elsewhere)
    (top / "single.pt.trace.json").symlink_to("../topper/inner/t.pt.trace.json")
    found = scan(top)
    assert names(found) == [". t.pt.trace.json"]
    (problem,) = found.problems
    assert problem.startswith("2 links that lead outside the logdir: skipped (")
    assert "linked" in problem
    assert "single.pt.trace.json" in problem
    assert "TB_BOTTLENECK_FOLLOW_LINKS=1" in problem
    monkeypatch.setenv("TB_BOTTLENECK_FOLLOW_LINKS", "1")
    found = scan(top)
    assert names(found) == [". single.pt.trace.json", ". t.pt.trace.json", "linked/inner t.pt.trace.json"]
    assert all(os.path.realpath(recording.path) == recording.path for recording in found.recordings)
    assert found.problems == ()


def test_a_skipped_link_is_listed_without_the_name_of_a_host(tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere" / "t.pt.trace.json")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "gpu17_1.1764000000000.pt.trace.json").symlink_to(elsewhere)
    (problem,) = scan(tmp_path / "top").problems
    assert "gpu17" not in problem
    assert "_1.1764000000000.pt.trace.json" in problem


def test_a_linked_logdir_is_its_target(tmp_path: Path) -> None:
    put(tmp_path / "real" / "run" / "t.pt.trace.json")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(scan(tmp_path / "link")) == ["run t.pt.trace.json"]


@pytest.mark.parametrize("skipped", ["node_modules", ".git"])
def test_directories_of_other_tools_are_skipped(tmp_path: Path, skipped: str) -> None:
    put(tmp_path / "a" / skipped / "t.pt.trace.json")
    assert scan(tmp_path).recordings == ()


def test_pipes_and_directories_named_like_traces_are_no_recordings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt.trace.json")
    os.mkfifo(tmp_path / "pipe.json")
    put(tmp_path / "dir.pt.trace.json" / "t.pt.trace.json")
    assert names(scan(tmp_path)) == ["dir.pt.trace.json t.pt.trace.json"]


def test_an_unreadable_directory_is_a_problem_and_the_rest_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "fine" / "t.pt.trace.json")
    put(tmp_path / "locked" / "t.pt.trace.json")
    scandir = os.scandir

    def guarded(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = scan(tmp_path)
    assert names(found) == ["fine t.pt.trace.json"]
    assert found.problems == (f"{tmp_path.resolve()}/locked: this directory could not be read (Permission denied).",)


def test_what_vanishes_during_the_walk_is_not_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "gone" / "t.pt.trace.json")
    put(tmp_path / "t.pt.trace.json")
    put(tmp_path / "gone.pt.trace.json")
    stat = os.stat

    def vanishing(path: str, **options: bool) -> os.stat_result:
        if "gone" in str(path):
            raise FileNotFoundError(2, "No such file or directory")
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", vanishing)
    found = scan(tmp_path)
    assert (names(found), found.problems) == ([". t.pt.trace.json"], ())


def test_a_logdir_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    (problem,) = scan(tmp_path / "absent").problems
    assert problem == f"{tmp_path}/absent: cannot be read (No such file or directory)."


def test_a_logdir_at_a_url_is_listed_like_a_local_one(tmp_path: Path) -> None:
    paths = ("b/h_1.3.pt.trace.json.gz", "t.json", "other.json", "b/c/x.json.bottlenecks.json", "a/events.tfevents.1")
    for path in paths:
        put(tmp_path / path, TRACE if path != "other.json" else '{"a": 1}')
        os.utime(tmp_path / path, (1.5e9, 1.5e9))  # stores give seconds as floats, which are exact for whole seconds
    local, url = scan(tmp_path, "one"), scan(f"local://{tmp_path}", "one")
    assert names(url) == names(local) == ["one t.json", "one/b h_1.3.pt.trace.json.gz"]
    assert [(one.size, one.mtime_ns) for one in url.recordings] == [
        (one.size, one.mtime_ns) for one in local.recordings
    ]
    assert all(one.path.startswith(("file://", "local://")) for one in url.recordings)


def test_a_url_that_is_not_there_is_a_problem() -> None:
    (problem,) = scan("memory://absent/runs").problems
    assert problem.startswith("memory://absent/runs: cannot be read (")


def test_names_that_are_not_unicode_are_shown_and_still_opened(tmp_path: Path) -> None:
    put(tmp_path / os.fsdecode(b"run\xff") / "t.pt.trace.json")
    (found,) = scan(tmp_path).recordings
    assert found.run == "run\N{REPLACEMENT CHARACTER}"
    assert Path(found.path).exists()


@pytest.mark.parametrize(
    ("spec", "roots"),
    [
        ("", ()),
        ("/p", (Root("/p"),)),
        ("a:/p,b:/q", (Root("/p", "a"), Root("/q", "b"))),
        ("/foo:bar/baz", (Root("/foo:bar/baz"),)),
        ("name:/path:with/colon", (Root("/path:with/colon", "name"),)),
        ("s3://b/p,n:gs://c", (Root("s3://b/p"), Root("gs://c", "n"))),
        ("a:rel/p,~/q", (Root("rel/p", "a"), Root("~/q"))),
        ("a:/p,", (Root("/p", "a"),)),
    ],
)
def test_a_logdir_spec_is_read_as_tensorboard_reads_it(spec: str, roots: tuple[Root, ...]) -> None:
    assert parse_logdir_spec(spec) == roots


def test_named_roots_put_their_name_before_the_run(tmp_path: Path) -> None:
    put(tmp_path / "p" / "t.pt.trace.json")
    put(tmp_path / "q" / "deep" / "t.pt.trace.json")
    found = scan_all([Root(f"{tmp_path}/q", "b"), Root(f"{tmp_path}/p", "a"), Root("s3://x")])
    assert names(found) == ["a t.pt.trace.json", "b/deep t.pt.trace.json"]
    assert len(found.problems) == 1


def test_runs_are_in_the_order_in_which_people_count(tmp_path: Path) -> None:
    names = ["night2", "night10", "night10b", "night010", "a", "10", "9", "9" * 200]
    for name in names:
        put(tmp_path / name / "t.pt.trace.json")
    found = [recording.run for recording in scan(tmp_path).recordings]
    assert found == ["9", "10", "9" * 200, "a", "night2", "night010", "night10", "night10b"]


def test_a_name_of_many_digits_can_be_sorted() -> None:
    assert natural("a" + "9" * 5000) > natural("a1")
