"""Converts messages to JSON: snake_case names; fields without presence are included even if they are empty."""

import inspect
import json
import math
import re
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

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
