"""Known oddities of traces, each as a tiny file in tests/traces, with the expected events and defects.

Most files contain three events: first, odd and last. The oddity may lose only its own event.
"""

import os
from pathlib import Path

import pytest

from tb_bottleneck.base.errors import NotATrace
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.trace import load

TRACES = Path(__file__).parent.parent / "traces"
ALL = ["first", "odd", "last"]
WITHOUT = ["first", "last"]
NO_END = "the list of events has no end"
EARLY = "the gzip stream ends early"

# file → (names of the remaining events, by start; lost parts and their counts; kind of truncation)
KEPT = {
    "sound.json": (ALL, {}, ""),
    # values
    "nan_and_infinity_in_args.json": (ALL, {}, ""),
    "lower_case_nan.json": (ALL, {}, ""),
    "bare_na_in_args.json": (ALL, {}, ""),
    "empty_value.json": (ALL, {}, ""),
    "nan_duration.json": (WITHOUT, {"time unusable": 1}, ""),
    "bare_na_for_time.json": (WITHOUT, {"time unusable": 1}, ""),
    "null_time.json": (WITHOUT, {"time unusable": 1}, ""),
    "missing_time.json": (WITHOUT, {"time unusable": 1}, ""),
    "words_for_numbers.json": (WITHOUT, {"time unusable": 1}, ""),
    "time_beyond_64_bits.json": (WITHOUT, {"time unusable": 1}, ""),
    "time_beyond_floats.json": (WITHOUT, {"time unusable": 1}, ""),
    "duration_overflow.json": (WITHOUT, {"time unusable": 1}, ""),
    "duration_of_104_days.json": (WITHOUT, {"duration overflow": 1}, ""),
    "negative_duration.json": (ALL, {"negative duration": 1}, ""),
    "missing_duration.json": (ALL, {}, ""),
    "step_of_no_length.json": (["ProfilerStep#1", *["op"] * 9], {}, ""),
    "zero_length_events.json": (["first", "odd", "odd 2", "last"], {}, ""),
    "integers_beyond_64_bits.json": (ALL, {}, ""),
    "integer_of_thousands_of_digits.json": (ALL, {}, ""),
    "device_beyond_32_bits.json": (ALL, {}, ""),
    "numbers_as_strings.json": (["odd"], {}, ""),
    "floats_for_ids.json": (["odd", "same row"], {}, ""),
    "absolute_times_with_nanoseconds.json": (["first", "text", "last"], {"time unusable": 1}, ""),
    # strings
    "unescaped_backslash.json": (["first", r"C:\Users\x\kernel.cu(12): odd", "last"], {}, ""),
    "unescaped_backslash_before_the_quote.json": (["first", "odd C:\\dir\\", "last"], {}, ""),
    "unescaped_quote_in_name.json": (["first", 'say "odd", twice', "last"], {}, ""),
    "unescaped_quote_and_bare_na.json": (["first", 'say "odd"', "last"], {}, ""),
    "control_characters_in_string.json": (["first", "odd\x01\x02\ttab", "last"], {}, ""),
    "newline_in_string.json": (["first", "odd\nline", "last"], {}, ""),
    "bad_utf8.json": (["first", "odd???", "last"], {}, ""),
    "bad_utf8_in_key.json": (ALL, {}, ""),
    "bad_utf8_for_args.json": (ALL, {"arguments": 1}, ""),
    "bad_utf8_for_number.json": (ALL, {"arguments": 1}, ""),
    "lone_surrogates.json": (["first", "odd ? ??", "last"], {}, ""),
    "null_character_in_name.json": (["first", "odd\0", "last"], {}, ""),
    "markup_in_name.json": (["first", "<img src=x onerror=odd()>../../odd\u202e", "last"], {}, ""),
    # structure
    "trailing_comma_in_event.json": (ALL, {}, ""),
    "trailing_comma_in_list.json": (ALL, {}, ""),
    "missing_comma_between_events.json": (ALL, {}, ""),
    "missing_closing_brace.json": (WITHOUT, {"malformed": 1}, ""),
    "extra_opening_brace.json": (WITHOUT, {"malformed": 1}, ""),
    "not_an_event_in_list.json": (WITHOUT, {"malformed": 1}, ""),
    "nested_events_in_args.json": (ALL, {}, ""),
    "broken_event_with_nested_events.json": (WITHOUT, {"malformed": 2, "no phase": 2, "time unusable": 1}, ""),
    "duplicate_keys.json": (["first", "odd again", "last"], {}, ""),
    "null_everywhere.json": (["first", "", "last"], {}, ""),
    "args_as_list.json": (ALL, {"arguments": 1}, ""),
    "args_as_text.json": (ALL, {"arguments": 1}, ""),
    "wrong_type_in_args.json": (ALL, {"arguments": 1}, ""),
    "wrong_types_in_event.json": (WITHOUT, {"malformed": 1}, ""),
    "no_phase.json": (WITHOUT, {"no phase": 1}, ""),
    "unknown_phases.json": (WITHOUT, {}, ""),
    "unknown_category.json": (ALL, {}, ""),
    "gpu_only.json": (ALL, {}, ""),
    "string_pids.json": (ALL, {}, ""),
    "metadata_before_events.json": (ALL, {}, ""),
    "metadata_after_events.json": (ALL, {}, ""),
    # layout
    "byte_order_mark.json": (ALL, {}, ""),
    "crlf.json": (ALL, {}, ""),
    "one_key_a_line_crlf.json": (ALL, {}, ""),
    "compact.json": (ALL, {}, ""),
    "pretty.json": (ALL, {}, ""),
    "events_first.json": (ALL, {}, ""),
    "events_last.json": (ALL, {}, ""),
    "top_level_list.json": (ALL, {}, ""),
    "top_level_list_without_end.json": (ALL, {}, NO_END),
    "other_lists_behind_events.json": (ALL, {}, ""),
    "no_events.json": ([], {}, ""),
    # header
    "header_of_wrong_types.json": (ALL, {}, ""),
    "header_entries_of_wrong_types.json": (ALL, {}, ""),
    "header_with_bare_na.json": (ALL, {}, ""),
    # dialects
    "hip_names.json": (["first", "hipLaunchKernel", "Memcpy HtoD (Host -> Device)", "last"], {}, ""),
    "torch_1_8.json": (
        [
            "train.py(1): main",
            "aten::add",
            "cudaLaunchKernel",
            "vectorized_elementwise",
            "Memcpy DtoH (Device -> Pageable)",
            "Memset (Device)",
        ],
        {},
        "",
    ),
    # ends
    "truncated_mid_event.json": (["first", "odd"], {"cut off": 1}, NO_END),
    "truncated_mid_args.json": (["first", "odd"], {"cut off": 1}, NO_END),
    "truncated_mid_string.json": (["first", "odd"], {"cut off": 1}, NO_END),
    "truncated_after_comma.json": (["first", "odd"], {}, NO_END),
    "truncated_before_closing_bracket.json": (ALL, {}, NO_END),
    "truncated_in_tail.json": (ALL, {}, ""),  # all the events are there
    "zeros_after_truncation.json": (["first", "odd"], {"cut off": 1}, NO_END),
    # gzip
    "gz_that_is_not_gzip.json.gz": (ALL, {}, ""),
    "gzip_without_gz_name.json": (ALL, {}, ""),
    "gzip_of_several_members.json.gz": (ALL, {}, ""),
    "gzip_with_padding.json.gz": (ALL, {}, ""),
    "garbage_after_gzip.json.gz": (ALL, {}, ""),
    "truncated_gzip.json.gz": (["first"], {"cut off": 1}, EARLY),
    "gzip_without_checksum.json.gz": (ALL, {}, EARLY),
    "gzip_with_wrong_checksum.json.gz": (ALL, {}, "the gzip stream is damaged (incorrect data check)"),
    "damaged_gzip.json.gz": (["first"], {"cut off": 1}, "the gzip stream is damaged (invalid distance too far back)"),
}

EMPTY = "The file is empty: the profiler was stopped or killed before it wrote."
NO_LIST = 'No list "traceEvents" was found. A trace written by torch.profiler has one.'
REFUSED = {
    "empty.json": EMPTY,
    "white_space_only.json": EMPTY,
    "gzip_header_only.json.gz": EMPTY,
    "gzip_of_nothing.json.gz": EMPTY,
    "ten_bytes.json": NO_LIST,
    "truncated_in_head.json": NO_LIST,
    "no_events_list.json": NO_LIST,
    "events_not_a_list.json": NO_LIST,
    "not_json.json": NO_LIST,
}


@pytest.fixture
def settled(tmp_path):
    """Returns a function that copies a trace, sets an old time, and returns the path."""

    def copy(name):
        path = tmp_path / name
        path.write_bytes((TRACES / name).read_bytes())
        os.utime(path, (1e9, 1e9))
        return str(path)

    return copy


def names_of(trace):
    return [trace.names[name] for name in trace.events.name]


def test_every_tiny_file_is_in_a_table_and_is_tiny():
    files = {path.name for path in TRACES.glob("*.json*")}
    assert files == set(KEPT) | set(REFUSED)
    assert max((TRACES / name).stat().st_size for name in files) <= 2048


@pytest.mark.parametrize("name", KEPT)
def test_an_oddity_loses_at_most_its_own_event(name, settled):
    trace = load(settled(name))
    assert (names_of(trace), dict(trace.lost), trace.truncated) == KEPT[name]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_trace_is_refused_with_the_reason(name, settled):
    with pytest.raises(NotATrace) as caught:
        load(settled(name))
    assert str(caught.value) == REFUSED[name]


@pytest.mark.parametrize("name", [*KEPT, *REFUSED])
def test_every_tiny_file_gets_a_report(name, settled):
    report = diagnose(settled(name))
    assert report.health.status == ("unreadable" if name in REFUSED else "incomplete")
    assert [reason.code for reason in report.health.reasons] != ["broken"]


def test_what_is_odd_about_one_argument_leaves_the_others(settled):
    values = ("bare_na_in_args", "empty_value", "nan_and_infinity_in_args", "lower_case_nan")
    for name in (*values, "unescaped_quote_and_bare_na", "bad_utf8_in_key"):
        events = load(settled(f"{name}.json")).events
        assert events.correlation.tolist() == [0, 5, 5], name
        assert (events.device.tolist(), events.stream.tolist()) == ([0, 0, 0], [0, 0, 7]), name


def test_numbers_are_the_same_as_text_and_as_floats(settled):
    text, floats = load(settled("numbers_as_strings.json")), load(settled("floats_for_ids.json"))
    for events in (text.events, floats.events):
        found = {column: int(getattr(events, column)[0]) for column in events.__dataclass_fields__}
        assert found == {
            "start": 12_125, "duration": 1_500, "kind": 5, "name": 0, "thread": 0,
            "correlation": 5, "device": 1, "stream": 9, "bytes": 4096, "blocks": 8, "message": 0,
            "multiprocessors": 0, "sequence": 0, "signature": 0, "occupancy": 0,
        }  # fmt: skip
    assert floats.events.thread.tolist() == [0, 0]
    assert [(row.process, row.thread) for row in floats.threads] == [("0", "7")]


def test_integers_beyond_64_bits_are_no_ids(settled):
    for name in ("integers_beyond_64_bits.json", "integer_of_thousands_of_digits.json"):
        events = load(settled(name)).events
        assert (events.correlation.tolist(), events.bytes.tolist()) == ([0, 0, 5], [0, 0, 0])


def test_a_number_beyond_32_bits_is_no_device(settled):
    """A report's device index has 32 bits: the whole report was lost (found by tests/fuzz.py)."""
    path = settled("device_beyond_32_bits.json")
    assert load(path).events.device.tolist() == [0, 0, 0]
    assert [reason.code for reason in diagnose(path).health.reasons] == ["insufficient_data"]


def test_nanoseconds_of_absolute_times_survive(settled):
    """float64 would round them to 0.25 us: the events would start at 0, 0 and 0."""
    events = load(settled("absolute_times_with_nanoseconds.json")).events
    assert (events.start - 1_700_000_000_000_000_000).tolist() == [1, 3, 4]
    assert events.duration.tolist() == [1, 1, 2]


def test_a_duration_that_went_negative_counts_as_none(settled):
    assert load(settled("negative_duration.json")).events.duration.tolist() == [3_000, 0, 2_250]


def test_the_dialect_of_torch_1_8(settled):
    trace = load(settled("torch_1_8.json"))
    assert trace.events.kind.tolist() == [3, 1, 4, 5, 6, 7]
    assert trace.events.correlation.tolist() == [0, 0, 7, 7, 8, 0]
    assert trace.events.stream.tolist() == [0, 0, 0, 7, 7, 7]
    assert ("0", "stream 7") in [(row.process, row.thread) for row in trace.threads]
    assert trace.device_ops.launched.tolist() == [True, False, False]


def test_work_whose_launches_were_not_recorded(settled):
    """activities=[CUDA] alone records runtime calls as the only host rows, and filters remove those too."""
    ops = load(settled("gpu_only.json")).device_ops
    assert (len(ops), ops.launched.any()) == (3, False)


def test_thread_names_at_any_position(settled):
    for name in ("metadata_before_events.json", "metadata_after_events.json", "string_pids.json"):
        threads = load(settled(name)).threads
        assert [row.name for row in threads if (row.process, row.thread) == ("1", "2")] == ["main"], name


def test_the_header_at_any_position(settled):
    for name in ("sound", "events_first", "events_last", "crlf", "pretty", "header_with_bare_na", "truncated_mid_args"):
        header = load(settled(f"{name}.json")).header
        assert [device.name for device in header.devices] == ["NVIDIA H100"], name


def test_a_header_of_wrong_types_is_ignored(settled):
    header = load(settled("header_of_wrong_types.json")).header
    assert (header.devices, header.distributed, header.rank, header.context) == ((), False, None, {})
    assert header.stacks_recorded is False
    entries = load(settled("header_entries_of_wrong_types.json")).header
    assert [(device.index, device.name, device.multiprocessors) for device in entries.devices] == [
        (2, "", None),
        (3, "B200 ?", None),
        (4, "", None),
    ]
    assert (entries.rank, entries.world_size) == (None, None)
