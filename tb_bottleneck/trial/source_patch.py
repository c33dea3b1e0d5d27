"""Writes a change as a patch of the script, for `patch -p0`.

The patch changes arguments of DataLoader and of optimizers in calls that are found in the syntax tree, and adds lines
after the imports. Code that cannot be added this way is listed for the user. The script itself is never changed.
"""

import ast
import contextlib
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.bottlenecks.texts import EDIT
from tb_bottleneck.report.source_lines import unchanged_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trial.changes import KINDS, Change, parsed

OPTIMIZERS = {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax"}


@dataclass(frozen=True)
class SourcePatch:
    """A unified diff (`diff`), and the code of the settings that the diff does not contain (`by_hand`)."""

    diff: str
    by_hand: tuple[str, ...]


def patch_of(change: Change, path: str, source: str) -> SourcePatch:
    """Returns the patch that makes `change` in a script. `path` is the path of the script that is written to the patch,
    and `source` is its text. Raises SyntaxError if `source` is not valid Python."""
    text, by_hand = source, []
    for name, value in change.settings:
        kind = KINDS[name]
        code = Template(kind.code).safe_substitute(value=value)
        if kind.loader or kind.optimizer:
            names = {"DataLoader"} if kind.loader else OPTIMIZERS
            changed = _with_argument(text, names, code)
        elif code.startswith(("torch.", "os.environ")) and "\n" not in code:
            changed = _after_imports(text, code)
        else:
            changed = text
        if changed == text:
            by_hand.append(code)
        text = changed
    lines = difflib.unified_diff(source.splitlines(keepends=True), text.splitlines(keepends=True), path, path, n=1)
    return SourcePatch("".join(lines), tuple(by_hand))


MAX_SOURCE = 1 << 18
"""Characters of a script for which a patch is made when a report is shown."""


def add_patches(report: pb.Report, folder: Path | None) -> None:
    """Sets the patch of each finding whose fix is a setting that a patch of the program can contain.

    The program is read from `folder`, if it is the file that was recorded. With `folder` None, no patch is set."""
    places = [place for finding in report.findings for place in finding.where if place.file == report.program_file]
    source = unchanged_text(folder, places[0]) if folder is not None and places else None
    for finding in report.findings:
        finding.fix.ClearField("patch")
        if source is None or len(source) > MAX_SOURCE or not finding.fix.trial or finding.fix.trial.startswith(EDIT):
            continue
        with contextlib.suppress(Unusable, SyntaxError, ValueError, RecursionError, MemoryError):
            (change,) = parsed(finding.fix.trial.split())  # of several values, none is certain
            if any(name == "workers" for name, _ in change.settings):
                change = change.combined(Change((("persistent_workers", ""),)))
            patch = patch_of(change, report.program_file, source)
            if patch.diff and not patch.by_hand:
                finding.fix.patch = patch.diff


def _with_argument(source: str, names: set[str], argument: str) -> str:
    """Returns `source` with `argument` (such as "num_workers=2") in each call of a function whose name is in `names`.

    If a call already has this keyword argument, its value is replaced, unless the value takes several lines.
    """
    keyword = argument.partition("=")[0]
    lines = source.splitlines(keepends=True)
    for call in sorted(_calls(source, names), key=lambda each: (each.lineno, each.col_offset), reverse=True):
        given = next((each for each in call.keywords if each.arg == keyword), None)
        if given is not None:
            value = given.value
            _replace(lines, value, argument.partition("=")[2])
        elif call.end_lineno is not None and call.end_col_offset is not None:
            _add(lines, call.end_lineno - 1, call.end_col_offset - 1, argument, bool(call.args or call.keywords))
    return "".join(lines)


def _add(lines: list[str], row: int, column: int, argument: str, has_others: bool) -> None:
    """Adds `argument` to `lines` before the closing parenthesis of a call at `row` and `column`.

    `has_others` is True if the call has other arguments. If the parenthesis is the first text of its line, a new line
    is inserted for the argument.
    """
    before, after = _split(lines[row], column)
    if before.strip() or not has_others:
        separator = "" if not has_others else " " if before.rstrip().endswith(",") else ", "
        lines[row] = f"{before.rstrip() if has_others else before}{separator}{argument}{after}"
        return
    last = lines[row - 1].rstrip("\n")
    lines[row - 1] = f"{last}{'' if last.rstrip().endswith(',') else ','}\n"
    lines.insert(row, f"{last[: len(last) - len(last.lstrip())]}{argument},\n")


def _calls(source: str, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in names:
                yield node


def _replace(lines: list[str], node: ast.expr, text: str) -> None:
    if node.end_lineno != node.lineno or node.end_col_offset is None:
        return
    row = node.lineno - 1
    before, _ = _split(lines[row], node.col_offset)
    _, after = _split(lines[row], node.end_col_offset)
    lines[row] = f"{before}{text}{after}"


def _split(line: str, column: int) -> tuple[str, str]:
    """Splits `line` at `column`, which counts bytes of UTF-8, as columns of Python's syntax tree do."""
    data = line.encode()
    return data[:column].decode(), data[column:].decode()


def _after_imports(source: str, code: str) -> str:
    """Returns `source` with the line `code` after the imports at its top; `source` itself if there are no imports."""
    last = 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            last = node.end_lineno or node.lineno
        elif not isinstance(node, ast.Expr):
            break
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:last], f"{code}\n", *lines[last:]]) if last else source
