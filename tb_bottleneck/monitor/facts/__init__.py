"""Facts about the training process, collected once."""
