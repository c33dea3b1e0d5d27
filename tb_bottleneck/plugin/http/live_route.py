"""The route `live`: the jobs that train under the logdir, from the heartbeats of their ranks."""

import json
import os
import threading
import time
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http.responses import Response, error, pending
from tb_bottleneck.plugin.state.run_index import RunIndex
from tb_bottleneck.plugin.workers.analysis_queue import WAITING

if TYPE_CHECKING:
    from tb_bottleneck.live.state import LiveJobs, LiveState

SHARED_S = 1.0
"""Clients share an answer for this many seconds, because heartbeats are written only every 5 s."""


class LiveRoute:
    """The HTTP handler of the route `live`. Reads the heartbeats in the run directories that the last scan found. Any
    thread may call `live`."""

    def __init__(self, runs: RunIndex) -> None:
        self._runs = runs
        self._lock = threading.Lock()
        self._jobs: LiveJobs | None = None
        self._read_at = float("-inf")
        self._states: list[LiveState] = []

    def live(self, request: Request) -> Response:
        """Replies with a short entry for each job. With the parameter `run`, replies with all details of the job in
        this run directory."""
        scan = self._runs.latest()
        if scan is None:
            return pending(WAITING)
        directories = {os.path.dirname(each.path): each.run for each in scan.listing.recordings if each.is_telemetry}
        with self._lock:
            if self._jobs is None:
                from tb_bottleneck.live.state import LiveJobs  # imported only if a client asks for this route

                self._jobs = LiveJobs("")
            if time.monotonic() - self._read_at > SHARED_S:
                self._states, self._read_at = self._jobs.read(directories), time.monotonic()
            states = self._states
        run = request.args.get("run", "")
        if not run:
            return _json({"jobs": [state.as_json(brief=True) for state in states]})
        for state in states:
            if any(rank.directory == run for rank in state.job.ranks):
                return _json({"jobs": [state.as_json()]})
        return error(404, "No training with this run directory writes heartbeats now.")


def _json(content: object) -> Response:
    return Response(json.dumps(content, separators=(",", ":"), allow_nan=False).encode(), "application/json")
