"""The module that TensorBoard's entry point names: an import error here would keep TensorBoard from starting.

So it imports the standard library and TensorBoard's own base class; the rest of the plugin is imported in `load`.
"""

import logging
import sys

from tensorboard.plugins import base_plugin

logger = logging.getLogger(__name__)


class BottleneckLoader(base_plugin.TBLoader):
    """Loads the Bottlenecks tab, or tells in the log why it cannot and lets TensorBoard run without it."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """The plugin, or None where it could not be loaded."""
        try:
            from tb_bottleneck.plugin.plugin import BottleneckPlugin

            return BottleneckPlugin(context)
        except ValueError as error:  # of an environment variable of ours: its message says what to give
            logger.error("The Bottlenecks tab is off: %s.", error)
        except Exception as error:  # whatever is wrong with this installation, TensorBoard's other tabs must live
            logger.error(
                "The Bottlenecks tab is off: %s: %s. Look at `%s -m pip check`; `pip install --upgrade tb_bottleneck` "
                "in the same environment mends most installations.",
                type(error).__name__,
                error,
                sys.executable,
            )
        return None
