"""Worker processes that read traces, and the queues in front of them."""
