"""The encoded summary of a recording, or nothing: an error in it must not cost the report."""

import logging
import os

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.jobs.summary.encoding import encode
from tb_bottleneck.jobs.summary.extract import summary_of
from tb_bottleneck.sources.host_names import host_of

_log = logging.getLogger(__name__)


def encoded_summary(recording: Recording, path: str) -> bytes:
    """Returns the encoded summary of the recording at `path`; empty if it is not one rank of several.

    It has the recorded times: those of several ranks are on one clock, and a rank waits for others that record, too.
    """
    try:
        summary = summary_of(recording.as_recorded, host_of(os.path.basename(path)))
        return encode(summary) if summary is not None else b""
    except MemoryError:
        raise
    except Exception:
        _log.exception("the summary of one recording failed")
        return b""
