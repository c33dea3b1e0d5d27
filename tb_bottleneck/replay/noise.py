"""What two runs of one training differ by: every promised gain is this much less sure than its simulation."""

# Bounds of a gain are widened by this, whatever is cured. Step times of the recorded trainings of demo/ have standard
# deviations of 3.5 to 7 % from run to run (one of six: 20 %).
NOISE = 0.03
