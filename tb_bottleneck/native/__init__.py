"""The native scanner: C that turns lists of events into columns. It is optional: msgspec reads them as well."""
