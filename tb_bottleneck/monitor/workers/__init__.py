"""What the monitor does in the worker processes of a DataLoader: it samples what their main threads run."""
