"""HTTP routes of the plugin."""
