"""Tables of recordings as Parquet files, for questions that the reports do not answer."""
