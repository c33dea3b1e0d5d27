"""What can be asked about a run that was never made: each change is one file."""
