"""`python -m demo [serve] …` shows the recorded pairs, `record …` records them anew, `table` judges the judgements."""

import sys
from collections.abc import Sequence

from demo import record, serve


def main(arguments: Sequence[str]) -> int:
    """The exit status of the command that the arguments name; `serve` where they name none."""
    match arguments:
        case ["record", *rest]:
            return record.main(rest)
        case ["table", *rest]:
            from demo import table  # it diagnoses, which serving leaves to TensorBoard

            return table.main(rest)
        case ["serve", *rest]:
            return serve.main(rest)
    return serve.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
