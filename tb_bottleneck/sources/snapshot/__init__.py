"""Reads allocator snapshots, which are pickles of plain data, without executing anything in them."""
