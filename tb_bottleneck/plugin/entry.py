"""The module of TensorBoard's entry point. An import error here would prevent TensorBoard from starting.

Therefore this module imports only the standard library and TensorBoard's own base class; `load` imports everything
else.
"""

import logging
import sys

from tensorboard.plugins import base_plugin

logger = logging.getLogger(__name__)


class BottleneckLoader(base_plugin.TBLoader):
    """Loads the Bottlenecks tab. If that fails, logs the reason and lets TensorBoard run without it."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """Returns the plugin, or None if it cannot be loaded."""
        try:
            from tb_bottleneck.plugin.plugin import BottleneckPlugin

            return BottleneckPlugin(context)
        except ValueError as error:  # an environment variable of this package is invalid; the message says what to set
            logger.error("The Bottlenecks tab is off: %s.", error)
        except Exception as error:  # whatever is wrong with this installation, TensorBoard's other tabs must work
            logger.error(
                "The Bottlenecks tab is off: %s: %s. Run `%s -m pip check`; `pip install --upgrade tb_bottleneck` "
                "in the same environment fixes most installations.",
                type(error).__name__,
                error,
                sys.executable,
            )
        return None
