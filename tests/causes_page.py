"""Writes tb_bottleneck/docs/causes.md, the list of all causes: `python tests/causes_page.py --write`.

Without `--write`, prints it.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tb_bottleneck.bottlenecks.texts import cause_titles  # noqa: E402

PAGE = ROOT / "tb_bottleneck/docs/causes.md"
HEAD = """\
# Causes

Every cause that a report can name, with its title. `tb-bottleneck review … --cause` takes these ids, and reports have
them as `cause`. On a run without an accelerator, the titles say CPU or operators instead of device.

| cause | title |
|---|---|
"""


def page() -> str:
    """Returns the text of the page."""
    return HEAD + "".join(f"| `{name}` | {title} |\n" for name, title in sorted(cause_titles().items()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
