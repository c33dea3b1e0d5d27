"""The roofline: the work of an operator, the bytes it must move, and which roof its kernels run into."""
