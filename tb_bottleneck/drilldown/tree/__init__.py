"""The tree of where time goes: by module, function, operator or record_function range."""
