"""Converts messages to JSON: snake_case names; fields without presence are included even if they are empty.

Saved reports: the command that saves them, and reading them from their JSON form.

Reports that an earlier version of the schema wrote are read, too.
"""

import inspect
import json
import math
import os
import re
import shlex
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.file_system import display_name
from tb_bottleneck.version import SCHEMA

_REPORT_FIELDS = {"witness": "evidence_source", "stretches": "phases"}
_WINDOW_FIELDS = {"each_ns": "step_times_ns"}


def parse_report(values: object, ignore_unknown_fields: bool = False) -> pb.Report:
    """Converts JSON values to a report. A report of schema 1 is converted to the current schema. If
    `ignore_unknown_fields` is False, an unknown field is an error.

    Raises:
        ParseError: the values are not a report.
    """
    if not isinstance(values, dict):
        raise json_format.ParseError("a report is a JSON object")
    if values.get("schema") == 1:
        values = _from_schema_1(values)
    try:
        return json_format.ParseDict(values, pb.Report(), ignore_unknown_fields=ignore_unknown_fields)
    except json_format.ParseError:
        raise
    except Exception as error:  # protobuf raises OverflowError for 400 digits, and SystemError for other odd values
        raise json_format.ParseError(f"not a report: {type(error).__name__}") from error


def _from_schema_1(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the values of a report of schema 1, with the names of fields that schema 2 has."""
    renamed = _renamed(values, _REPORT_FIELDS) | {"schema": SCHEMA}
    if "witness" in values:
        renamed["witness"] = values["witness"]
    if isinstance(window := values.get("window"), dict):
        renamed["window"] = _renamed(window, _WINDOW_FIELDS)
    return renamed


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Returns a copy of `values` in which keys are renamed by `names` (old -> new). If `values` already has the new
    key, that value is kept."""
    return {names[name]: value for name, value in values.items() if name in names} | {
        name: value for name, value in values.items() if name not in names
    }


def save_command(trace: str) -> str:
    """Returns the command that diagnoses the job of a trace and writes the report into the directory of the trace."""
    return f"tb-bottleneck diagnose --write {shlex.quote(display_name(os.path.dirname(trace)))}"


# Characters that JSON may contain as they are, but that can affect a terminal: C1 control characters, and marks of the
# writing direction.
_CONTROL = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# The option to include empty fields; protobuf before 26 (Python 5.26) has another name for it.
_NAMES = ("always_print_fields_with_no_presence", "including_default_value_fields")
_OPTIONS = inspect.signature(json_format.MessageToDict).parameters
_WITH_EMPTY_FIELDS: dict[str, Any] = {next(name for name in _NAMES if name in _OPTIONS): True}


def as_dict(message: Message) -> dict[str, Any]:
    """Returns `message` as a dict for JSON. Empty fields without presence are included, absent messages are not."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True, **_WITH_EMPTY_FIELDS)


def refuse_not_finite(message: Message) -> None:
    """Raises ValueError if a number of the message is NaN or infinite, because the JSON form of such a number would be
    a string."""
    for field, value in message.ListFields():
        values = [value] if isinstance(value, Message | float | int | str | bytes) else value
        for item in values:
            if isinstance(item, Message):
                refuse_not_finite(item)
            elif isinstance(item, float) and not math.isfinite(item):
                raise ValueError(f"{message.DESCRIPTOR.name}.{field.name} is {item}")


def as_json(message: Message, indent: int | None = None) -> str:
    """Returns the message as JSON text. Raises ValueError for NaN and infinite numbers; a missing value has to be an
    absent field instead."""
    separators = (",", ":") if indent is None else (",", ": ")
    refuse_not_finite(message)
    text = json.dumps(as_dict(message), allow_nan=False, ensure_ascii=False, indent=indent, separators=separators)
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
