"""FLOPs and bytes of operators, device peaks, and the roofline bound of each kernel."""
