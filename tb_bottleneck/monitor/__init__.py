"""The part that runs in the training process: records events without judging them, and never raises into the loop."""
