"""Logs of torch.compile, which torch writes with TORCH_TRACE=DIR."""
