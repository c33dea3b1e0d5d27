"""What strangers write cannot move a terminal, fill it, or take long to print."""

from tb_bottleneck.comparison.texts.sanitize import MAX_VALUE_LENGTH, sanitize


def test_control_characters_become_spaces():
    assert sanitize("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"


def test_a_long_name_is_kept_by_its_beginning():
    assert sanitize("x" * 5000) == "x" * (MAX_VALUE_LENGTH - 1) + "…"
    assert sanitize("x" * MAX_VALUE_LENGTH) == "x" * MAX_VALUE_LENGTH


def test_a_number_of_thousands_of_digits_is_not_spelt_out():
    assert sanitize(10**5000) == "a number beyond any"
    assert sanitize(-5) == "-5"
