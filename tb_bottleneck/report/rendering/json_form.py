"""The JSON form of the messages: snake_case names, every field without presence printed."""

import json
import math
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message


def as_dict(message: Message) -> dict[str, Any]:
    """The message as JSON-ready values. Fields without presence are there even where empty; absent messages are not."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def refuse_not_finite(message: Message) -> None:
    """Raises ValueError where a number of the message is none: its JSON form would be a string."""
    for field, value in message.ListFields():
        values = [value] if isinstance(value, Message | float | int | str | bytes) else value
        for one in values:
            if isinstance(one, Message):
                refuse_not_finite(one)
            elif isinstance(one, float) and not math.isfinite(one):
                raise ValueError(f"{message.DESCRIPTOR.name}.{field.name} is {one}")


def as_json(message: Message, indent: int | None = None) -> str:
    """The message as JSON text. Raises ValueError for NaN and infinities: what was not measured is absent instead."""
    separators = (",", ":") if indent is None else (",", ": ")
    refuse_not_finite(message)
    return json.dumps(as_dict(message), allow_nan=False, ensure_ascii=False, indent=indent, separators=separators)
