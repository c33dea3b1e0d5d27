"""What `--version` prints."""

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.sources.scan.results import native_scan
from tb_bottleneck.version import __version__


def version_text() -> str:
    """Returns the version, and which reader of traces is active."""
    try:
        reader = "pure" if native_scan() is None else "native"
    except Unusable as error:
        reader = f"none: {error}"
    return f"{__version__} (reader: {reader})"
