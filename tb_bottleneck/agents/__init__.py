"""What coding agents use: a server for the Model Context Protocol."""
