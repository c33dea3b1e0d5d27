"""The messages and names that the training process and the TensorBoard process share."""
