"""The plugin class that TensorBoard uses: its name, its tab, its routes, and its threads."""

import os

from tensorboard.plugins import base_plugin

from tb_bottleneck.plugin.http.responses import App
from tb_bottleneck.plugin.http.routes import Routes
from tb_bottleneck.plugin.http.static_files import HostPolicy
from tb_bottleneck.plugin.state.run_index import RunIndex
from tb_bottleneck.plugin.state.telemetry_registry import TelemetryRegistry
from tb_bottleneck.plugin.workers.analysis_queue import AnalysisQueue
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.schema.signals import PLUGIN_NAME
from tb_bottleneck.sources.logdir import Root, parse_logdir_spec
from tb_bottleneck.workers.ipc import WorkerLimits

TAB_NAME = "Bottlenecks"
ANALYSE = "tb_bottleneck.diagnosis.trace_or_snapshot:diagnose_recording"
"""Dotted name of the function that a worker process calls for each recording."""
ANSWER = "tb_bottleneck.plugin.workers.dispatch:answer"
"""Dotted name of the function that a worker process calls for each question."""


class BottleneckPlugin(base_plugin.TBPlugin):
    """The plugin. One instance serves many threads. The state that changes is in four parts, each behind a lock: runs,
    analyses, questions and telemetry."""

    plugin_name = PLUGIN_NAME

    def __init__(
        self, context: base_plugin.TBContext, analyse: str = ANALYSE, limits: WorkerLimits | None = None
    ) -> None:
        self._runs = RunIndex(roots_of(context))
        self._analyses = AnalysisQueue(analyse, limits or WorkerLimits.from_environment(os.environ))
        self._questions = QuestionQueue(ANSWER, limits or WorkerLimits.from_environment(os.environ))
        self._telemetry = TelemetryRegistry()
        hosts = HostPolicy.from_environment(os.environ, str(getattr(context.flags, "host", "") or ""))
        self._routes = Routes(logdir_of(context), self._runs, self._analyses, self._questions, self._telemetry, hosts)

    def get_plugin_apps(self) -> dict[str, App]:
        """Returns a dict from paths to WSGI applications: the routes of http_api.md."""
        return self._routes.apps()

    def is_active(self) -> bool:
        """Always returns True: without a recording, the tab explains how to make one.

        TensorBoard calls this method on each page load. Therefore the method also starts the next scan of the logdir,
        without waiting for its end.
        """
        self._runs.latest()
        return True

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Returns how TensorBoard shows the tab: an ES module with a function `render()` that draws the page.
        TensorBoard's reload button stays enabled."""
        return base_plugin.FrontendMetadata(es_module_path="/static/index.js", tab_name=TAB_NAME, disable_reload=False)

    def close(self) -> None:
        """Ends the threads and processes of this plugin. TensorBoard never calls this method; tests call it."""
        self._questions.close()
        self._analyses.close()
        self._telemetry.close()
        self._runs.close()


def logdir_of(context: base_plugin.TBContext) -> str:
    """Returns the logdir as the user specified it, with `--logdir` or `--logdir_spec`; "" if neither was given."""
    return str(context.logdir or getattr(context.flags, "logdir_spec", "") or "")


def roots_of(context: base_plugin.TBContext) -> tuple[Root, ...]:
    """Returns the directories to scan. Relative paths are resolved at once, because the working directory may
    change."""
    roots = (Root(str(context.logdir)),) if context.logdir else parse_logdir_spec(logdir_of(context))
    return tuple(root.resolved() for root in roots)
