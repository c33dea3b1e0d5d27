"""Text for a terminal: no line is wider than it, and no name in a recording controls it."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.base.units import one_line
from tb_bottleneck.bottlenecks.texts import regime_advice
from tb_bottleneck.text.terminal import Layout, Line, cut, shortened

CODES = [cause.code.template for regime in REGIMES for cause in regime_advice(regime).causes.values()]


@given(st.lists(st.text()), st.integers(20, 200), st.booleans())
def test_no_line_of_prose_is_wider_than_the_terminal(lines, width, styled):
    text = Layout(width, styled).text(lines)
    assert max(map(len, text.split("\n"))) <= min(width, 100)
    assert all(each.isprintable() for each in text.split("\n"))


def test_a_paragraph_continues_below_its_own_indentation():
    assert Layout(20).text(["  - one two three four five"]) == "  - one two three\n    four five\n"


def test_names_of_files_are_not_broken_at_hyphens():
    assert Layout(30).text(["a/20261121-160336/some-more.json b"]).splitlines()[0] == "a/20261121-160336/some-more.js"


def test_styles_are_codes_only_if_the_terminal_shows_them():
    lines = [Line("Heading", "strong"), Line("Critical: a fifth", "critical"), Line("x = 1", "code")]
    assert Layout(40, styled=False).text(lines) == "Heading\nCritical: a fifth\nx = 1\n"
    assert Layout(40, styled=True).text(lines) == "\x1b[1mHeading\x1b[0m\n\x1b[1;31mCritical\x1b[0m: a fifth\nx = 1\n"


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x1b]0;title\x07", "a\rb", "\u202egnp", "\x9b2J"])
def test_control_characters_of_names_are_removed(hostile):
    assert one_line(f"kernel{hostile}").isprintable()
    assert "\x1b" not in Layout(80, styled=False).text([f"- {hostile}"])


@pytest.mark.parametrize("code", [code for code in CODES if "$" not in code and "..." not in code])
def test_long_code_stays_valid(code):
    """A comment moves above its line, and lines are broken after commas."""
    try:
        whole = ast.dump(ast.parse(code))
    except SyntaxError:
        pytest.skip("not a whole statement")
    fitted = Layout(80).text([Line(line, "code") for line in code.splitlines()])
    assert ast.dump(ast.parse(fitted)) == whole


def test_code_with_a_place_to_break_it_fits_into_80_columns():
    lines = [line for code in CODES for line in code.splitlines()]
    wide = [line for line in lines if len(line) > 73]
    assert len(wide) > 50, "there are long lines to fit"
    fitted = Layout(80).text([Line(f"       {line}", "code") for line in wide]).splitlines()
    assert [line for line in fitted if len(line) > 80 and (", " in line[:80] or "# " in line)] == []


def test_texts_are_cut_to_a_width():
    assert (shortened("abcdefghij", 7), cut("abcdefghij", 7)) == ("ab…ghij", "abcdef…")
    assert (shortened("abc", 3), cut("abc", 3)) == ("abc", "abc")
    assert max(len(shortened("abcdefghij", width)) - width for width in range(1, 12)) <= 0
