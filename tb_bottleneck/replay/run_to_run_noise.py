"""What two runs of one training differ by: every promised gain is this much less sure than its simulation."""

# Bounds of a gain are widened by this, whatever is cured: chosen, for a machine that runs nothing else. On a shared one
# runs differ by more: the mean steps of one training's repeats in demo/recorded/recorded.json have a standard deviation
# of 7.8 % at the median (28 halves, 2026-11-21).
NOISE = 0.03
