"""The summary of one rank: all that the analysis of a job needs of its recording."""
