"""The summary of one rank: all data that the analysis of a job needs from the recording of the rank."""
