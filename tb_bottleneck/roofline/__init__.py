"""Floating-point operations and bytes of operators, peak rates of devices, and what limits each kernel (its bound in
the roofline model)."""
