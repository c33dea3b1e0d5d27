"""The only exception tree.

BottleneckError              anything this package raises on purpose; str() is one sentence for the user
├── NotFound                 a path or an id that does not exist
├── Unusable                 something that the user's own code gave or did, which we cannot work with
└── Unreadable               a file that is there but gives no trace
    ├── NotATrace            readable, but not a torch.profiler trace
    ├── TooLarge             inflates past the stated bound
    └── StillGrowing         ends early because it is being written right now
"""


class BottleneckError(Exception):
    """Root of the tree. The message says what was looked for, where, and what to do next."""


class NotFound(BottleneckError):
    """A path or an id that does not exist."""


class Unusable(BottleneckError):
    """Something that the user's own code gave or did, which we cannot work with."""


class Unreadable(BottleneckError):
    """A file that is there but gives no trace."""


class NotATrace(Unreadable):
    """A readable file that is not a torch.profiler trace."""


class TooLarge(Unreadable):
    """A file that inflates past the stated bound on bytes or events."""


class StillGrowing(Unreadable):
    """A file that ends early because it is being written right now; reading it again later may succeed."""
