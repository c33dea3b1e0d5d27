"""The memory over time: over the step of the peak, by block, and over the steps."""
