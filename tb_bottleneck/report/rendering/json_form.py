"""Converts messages to JSON: snake_case names, and all fields that have no presence."""

import json
import math
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message


def as_dict(message: Message) -> dict[str, Any]:
    """Returns the message as JSON-ready values. Empty fields without presence are included, absent messages are not."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def refuse_not_finite(message: Message) -> None:
    """Raises ValueError if a number of the message is NaN or infinite: its JSON form would be a string."""
    for field, value in message.ListFields():
        values = [value] if isinstance(value, Message | float | int | str | bytes) else value
        for item in values:
            if isinstance(item, Message):
                refuse_not_finite(item)
            elif isinstance(item, float) and not math.isfinite(item):
                raise ValueError(f"{message.DESCRIPTOR.name}.{field.name} is {item}")


def as_json(message: Message, indent: int | None = None) -> str:
    """Returns the message as JSON text. Raises ValueError for NaN and infinities: missing values are absent instead."""
    separators = (",", ":") if indent is None else (",", ": ")
    refuse_not_finite(message)
    return json.dumps(as_dict(message), allow_nan=False, ensure_ascii=False, indent=indent, separators=separators)
