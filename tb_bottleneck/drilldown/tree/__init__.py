"""The tree that shows where in the program time is spent: by module, function, operator or record_function range."""
