"""The tree of where time goes: by module, source line, operator or record_function range."""
