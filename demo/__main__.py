"""`python -m demo [serve] …` shows the recorded pairs, `record …` records them again, `table` compares predictions,
and `public …` shows public recordings of GPUs.
"""

import sys
from collections.abc import Sequence

from demo import record, serve


def main(arguments: Sequence[str]) -> int:
    """Runs the command named by the arguments, or `serve`, and returns its exit status."""
    match arguments:
        case ["record", *rest]:
            return record.main(rest)
        case ["table", *rest]:
            from demo import table  # imports the diagnosis, which `serve` does not need

            return table.main(rest)
        case ["public", *rest]:
            from demo import public  # imports the client of HTTP, which `serve` does not need

            return public.main(rest)
        case ["serve", *rest]:
            return serve.main(rest)
    return serve.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
