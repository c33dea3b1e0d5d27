"""How much of the device a run uses: utilisation, throughput, energy."""
