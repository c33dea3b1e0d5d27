"""Counts the files whose functions run for the report of a trace: `python tests/bench/files_run.py TRACE`."""

import argparse
import contextlib
import io
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

PACKAGE = CHECKOUT / "tb_bottleneck"


def files_run(trace: str) -> set[Path]:
    """Returns the files with a function that runs during `diagnose TRACE`. Code that runs on import does not count."""
    from tb_bottleneck.__main__ import main

    names: set[str] = set()

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            names.add(frame.f_code.co_filename)

    threading.setprofile(see)
    sys.setprofile(see)
    with contextlib.redirect_stdout(io.StringIO()):
        main(["diagnose", "--no-cache", trace])
    sys.setprofile(None)
    return {Path(name).relative_to(PACKAGE) for name in names if Path(name).is_relative_to(PACKAGE)}


def main() -> int:
    """Prints the number of files, in all and by folder."""
    parser = argparse.ArgumentParser(description="Counts the files that run for the report of a trace.")
    parser.add_argument("trace", help="a trace of torch.profiler")
    found = files_run(parser.parse_args().trace)
    for folder, count in sorted(Counter(os.path.dirname(file) or "." for file in found).items()):
        print(f"{count:4} {folder}")
    print(f"{len(found):4} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
