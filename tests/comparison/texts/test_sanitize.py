"""What strangers write cannot move a terminal, fill it, or take long to print."""

from tb_bottleneck.comparison.texts.sanitize import LONGEST, printable


def test_control_characters_become_spaces():
    assert printable("a\x1b[2Jb\nc\u202ed") == "a [2Jb c d"


def test_a_long_name_is_kept_by_its_beginning():
    assert printable("x" * 5000) == "x" * (LONGEST - 1) + "…"
    assert printable("x" * LONGEST) == "x" * LONGEST


def test_a_number_of_thousands_of_digits_is_not_spelt_out():
    assert printable(10**5000) == "a number beyond any"
    assert printable(-5) == "-5"
