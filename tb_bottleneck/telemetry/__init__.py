"""What the monitor wrote, in columns over time: bounded in memory, checked, and cut into windows."""
