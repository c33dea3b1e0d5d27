"""Where recordings may lie, behind one seam: on a local disk, or at a URL (s3://, gs://, memory://, ...).

Nothing else in the package looks at, opens or lists what a user named as the place of his recordings.
"""

import re

from tb_bottleneck.errors import NotFound, Unreadable
from tb_bottleneck.sources.place import Place, Status, shown

_URL = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")


def is_url(path: str) -> bool:
    """Whether the path names its own scheme."""
    return _URL.match(path) is not None


def place_of(path: str) -> Place:
    """What gets at this path."""
    if is_url(path):
        from tb_bottleneck.sources.remote_files import REMOTE  # few need it, and it takes a while to import

        return REMOTE
    from tb_bottleneck.sources.local_files import LOCAL

    return LOCAL


def status_of(path: str) -> Status:
    """What is at a path. Raises NotFound where nothing is, or nothing can be learnt of it, with what to do about it."""
    try:
        return place_of(path).status(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"no such file or directory: {shown(path)}") from error
    except OSError as error:
        raise NotFound(f"{shown(path)}: nothing could be read here ({error.strerror or error})") from error
    except ValueError as error:
        raise NotFound(f"no file can have this name: {path!r}") from error
    except Unreadable as error:
        raise NotFound(str(error)) from error
