"""Steps that become longer during the run."""
