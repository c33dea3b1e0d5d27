"""Logs of torch.compile as torch 2.13 writes them with TORCH_TRACE=DIR, shortened."""

import json

PREFIX = "V1123 02:56:47.748000 {process} torch/_dynamo/utils.py:2350] "
GUARD = "1/0: scale == 1.0    # x = self.b(x) * scale  # mp/tt/net.py:9 in forward\nUser stack trace:\n  File"
BREAK = """\
Graph break in user code at /home/me/job/models/net.py:8
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`.
  Hint: Avoid calling builtin `print`.

User code traceback:
  File "/home/me/job/train.py", line 18, in <module>
    main()
  File "/home/me/job/models/net.py", line 8, in forward
    print("one", end="")

Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/symbolic_convert.py", line 851, in wrapper
"""


def log(*compilations, process=7, breaks=(BREAK,), rank=None, folder="/home/me/job"):
    """Returns the text of a log with these records of compilations."""
    prefix = PREFIX.format(process=process)
    records = [
        ({"chromium_event": {}, "has_payload": "f0"}, '{\n"name": "dynamo"\n}'),
        ({"str": [f"{folder}/train.py", 1]}, ""),
        ({"dynamo_start": {"stack": [{"line": 18, "name": "<module>", "filename": 1, "loc": "main()"}]}}, ""),
        *(({"artifact": {"name": "dynamo_graph_break_reason"}, "has_payload": "f1"}, text) for text in breaks),
        *(({"compilation_metrics": entry}, "") for entry in compilations),
    ]
    ranked = {} if rank is None else {"rank": rank}
    lines = []
    for record, payload in records:
        lines += [prefix + json.dumps(record | ranked), *(f"\t{line}" for line in payload.splitlines())]
    return "\n".join(lines) + "\n"


def compilation(number="1/1", start_us=1_000, **fields):
    """Returns a record of a compilation."""
    place = {"co_name": "forward", "co_filename": "/home/me/job/models/net.py", "co_firstlineno": 6}
    return {"compile_id": number, **place, "start_time_us": start_us, "duration_us": 50, **fields}
