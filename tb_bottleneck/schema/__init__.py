"""What the training process and the TensorBoard process share, and nothing else."""
