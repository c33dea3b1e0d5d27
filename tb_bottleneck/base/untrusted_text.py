"""Makes text that others wrote safe to show in a terminal, which gets such text only in this form.

Names in traces, file names, notes and error messages are untrusted. A terminal interprets control characters; a
bidirectional override changes what a reader sees. JSON and HTML have escapes of their own (`json_form.as_json`,
Preact), so they keep every character.
"""

import json


def one_line(text: object, longest: int | None = None) -> str:
    """Returns `text` on one line, without characters that control a terminal or the direction of writing. Line breaks
    and tabs become spaces.

    Text with more than `longest` characters is cut off at the end and gets "…" as its last character. None means no
    limit.
    """
    shown = str(text)
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else " " if each.isspace() else "" for each in shown)


def quoted(text: object, longest: int) -> str:
    """Returns the untrusted `text` on one line between double quotes, with at most `longest` characters between them.

    Quotes and backslashes in the text are escaped as in JSON, so that the reader sees where the text ends.
    """
    shown = one_line(text, longest)
    while len(escaped := json.dumps(shown, ensure_ascii=False)) > longest + 2:
        shown = f"{shown[:-2]}…"
    return escaped
