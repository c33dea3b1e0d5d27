"""Training scripts with one performance problem each, and a switch that turns its fix on."""
