"""The noise between two runs is known without the analysis: the server reads it when it judges ranks together."""

import subprocess
import sys


def test_it_is_known_without_reading_traces():
    script = "import sys, tb_bottleneck.replay.run_to_run_noise; print('tb_bottleneck.trace' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
