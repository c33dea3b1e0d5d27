"""Constants for the differences between two runs of the same training."""

from math import exp

# 1.645 standard deviations of a normal distribution reach from its median to its 5 % and 95 % quantiles.
QUANTILE = 1.645
# Standard deviation of the logarithm of (host time of one run / of another run of the same training). The median times
# of CUDA calls in 11 pairs of public recordings of one training on one machine differ by 0.13. The mean steps of
# repeats of one CPU training in demo/recorded/recorded.json have a standard deviation of 0.078 at the median (28
# halves, 2026-11-21), so two repeats differ by 0.11.
HOST_DRIFT = 0.13
MEAN_STEP_ON_CPU = 0.078
HOST_DRIFTS = exp(QUANTILE * HOST_DRIFT), exp(-QUANTILE * HOST_DRIFT)
# The deviation of all other time, and its value at the quantile. The time of kernels of equal names differs by 0.02 in
# 9 of these pairs.
SAME_KERNELS = 0.02
RUN_TO_RUN_NOISE = QUANTILE * SAME_KERNELS
