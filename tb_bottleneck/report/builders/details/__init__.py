"""Parts of the report beside the verdicts: the input pipeline, compilation, the steps of an inference server."""
