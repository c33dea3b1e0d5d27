"""The one way in which text that others wrote reaches an output: names in traces, file names, notes, error messages.

A terminal interprets control characters; a bidirectional override changes what a reader sees; Markdown renders markup,
links and mentions. JSON and HTML have escapes of their own (`json_form.as_json`, Preact), so they keep every character.
"""

import re

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!&]")
# What GitHub and others turn into links or notifications even if it is escaped: @name, #12, URLs, www.
_LIVE = re.compile(r"@(?=\w)|#(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=GH)(?=-\d)", re.IGNORECASE)
_BREAK = "\u200b"  # zero-width space


def one_line(text: object, longest: int | None = None) -> str:
    """Returns the text on one line, without characters that control a terminal or the direction of writing.

    Text with more than `longest` characters is cut off at the end.
    """
    shown = str(text)
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else " " if each.isspace() else "" for each in shown)


def markdown(text: object) -> str:
    """Returns the text as Markdown that shows it literally: no markup, link or mention."""
    return _MARKUP.sub(r"\\\g<0>", _LIVE.sub(lambda match: match[0] + _BREAK, one_line(text)))
