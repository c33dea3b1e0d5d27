"""Worker processes with limits on memory and time, behind the tab, the server for agents, and the analysis of jobs."""
