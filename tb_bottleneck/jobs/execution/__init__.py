"""Analyses many recordings, here, in local processes, or on a Dask cluster."""
