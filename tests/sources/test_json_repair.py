import pytest

from tb_bottleneck.sources.json_repair import DECODER, MAX_REPAIRED, repaired


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": N/A, "b": 1}', {"a": None, "b": 1}),
        ('{"a": N/A}', {"a": None}),
        ('{"a": , "b":}', {"a": None, "b": None}),
        ('{"a": [1, N/A, nan, -inf]}', {"a": [1, None, None, None]}),
        ('{"a": 0123, "b": .5, "c": +1, "d": 0x7f}', {"a": 123.0, "b": 0.5, "c": 1.0, "d": None}),
        ('{"a": ' + "9" * 5000 + "}", {"a": None}),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2, ], "b": {"c": 1 ,\n},}', {"a": [1, 2], "b": {"c": 1}}),
        (r'{"a": "C:\Users\x", "b": N/A}', {"a": r"C:\Users\x", "b": None}),
        (r'{"a": "\u12"}', {"a": r"\u12"}),
        (r'{"a": "tab\t \q \\ \" \u00e9"}', {"a": 'tab\t \\q \\ " é'}),
        ('{"a": "C:\\dir\\", "b": 1}', {"a": "C:\\dir\\", "b": 1}),
        ('{"a": "say "hi"", "b": 1}', {"a": 'say "hi"', "b": 1}),
        ('{"a": "say "hi", then", "b": 1}', {"a": 'say "hi", then', "b": 1}),
        ('{"a": {"b": "f("x", "y")"}}', {"a": {"b": 'f("x", "y")'}}),
        ('{"a": ["x"y", "z"], "b": "q"r"}', {"a": ['x"y', "z"], "b": 'q"r'}),
        ('{"a"b": 1}', {'a"b': 1}),
        ('{"a": "x"y", "b": N/A}', {"a": 'x"y', "b": None}),
    ],
)
def test_known_defects_are_repaired(text, value):
    with pytest.raises(ValueError, match=r":|digits"):
        DECODER.decode(text)
    assert repaired(text) == value


def test_words_inside_sound_strings_stay():
    """The repair of one value must not change strings next to it."""
    assert repaired('{"name": "f(:, N/A) ,} nan", "x": N/A}') == {"name": "f(:, N/A) ,} nan", "x": None}


def test_control_characters_need_no_repair():
    assert DECODER.decode('{"a": "\x01\n", "b": -Infinity}') == {"a": "\x01\n", "b": float("-inf")}


def test_long_fractions_keep_their_digits():
    assert repaired('{"ts": 1700000000000000.123, "x": N/A}') == {"ts": "1700000000000000.123", "x": None}
    assert repaired('{"ts": 12345678.123, "x": N/A}') == {"ts": 12345678.123, "x": None}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2]", "7", '{"a": 1} {"b": 2}', '{"a" 1}', '{"a": ' + "[" * 100_000],
    ids=lambda text: text[:12],
)
def test_text_that_cannot_be_repaired_is_none(text):
    assert repaired(text) is None


def test_what_is_too_large_is_not_tried():
    assert repaired('{"a": N/A, "b": "' + "x" * MAX_REPAIRED + '"}') is None


@pytest.mark.parametrize("piece", ['"', '\\"', '"a": "', '": ', '", "a":', "{", '"a": [', " ", ":", "\\", '"\\u'])
def test_malformed_text_takes_linear_time(piece):
    """A quadratic repair of 300 kB would take minutes."""
    assert repaired('{"a": "' + piece * (300_000 // len(piece))) is None
