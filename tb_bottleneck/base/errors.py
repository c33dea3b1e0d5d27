"""The exceptions of this package.

BottleneckError              any error that this package raises on purpose; str() is one sentence for the user
├── NotFound                 a path or an id that does not exist
├── Unusable                 something that cannot be used, and that is not a recording
├── NoCluster                a Dask cluster that cannot be used
└── Unreadable               a file that exists but is not a usable trace
    ├── Inaccessible         the operating system or the store refuses to read it
    ├── NotATrace            readable, but not a torch.profiler trace
    ├── TooLarge             exceeds the stated limit when decompressed
    └── StillGrowing         incomplete because it is being written at present
"""

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns the end of a message about the unknown name `word`: "; did you mean X?", where X is the most similar name
    in `known`. Returns an empty text if no name is similar."""
    from difflib import get_close_matches

    similar = get_close_matches(word, list(known), n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


class BottleneckError(Exception):
    """Base class of all exceptions of this package. The message says what was expected, where, and what to do next."""


class NotFound(BottleneckError):
    """A path or an id that does not exist."""


class Unusable(BottleneckError):
    """Something that cannot be used, and that is not a recording. Examples: a wrong return value of the user's own
    code, or an output directory that is not empty."""


class NoCluster(BottleneckError):
    """A Dask cluster that cannot be used."""


class Unreadable(BottleneckError):
    """A file that exists but is not a usable trace."""


class Inaccessible(Unreadable):
    """A file that the operating system or the store refuses to read: no permission, or an I/O error."""


class NotATrace(Unreadable):
    """A readable file that is not a torch.profiler trace."""


class TooLarge(Unreadable):
    """A file that exceeds the stated limit on bytes or events when it is decompressed."""


class StillGrowing(Unreadable):
    """A file that is incomplete because it is being written at present; reading it again later may succeed."""
