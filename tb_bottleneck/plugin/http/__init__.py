"""The HTTP routes of the plugin, as http_api.md describes them."""
