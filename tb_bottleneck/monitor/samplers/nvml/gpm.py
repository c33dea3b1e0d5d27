"""GPU performance monitoring (GPM, Hopper and newer): metrics between two samples that the driver takes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pynvml


class GpmSamples:
    """The two samples of one GPU, of which the older is always taken anew. Raises what pynvml raises."""

    def __init__(self, board: Any, instance: int | None) -> None:
        self._board = board
        self._instance = instance
        self._older: Any = None
        self._newer: Any = None

    def since_last(self, metrics: Sequence[int]) -> Mapping[int, float]:
        """Values by metric id, without those that this GPU does not give; empty at the first call."""
        spare, self._older = self._older, self._newer
        self._newer = None  # if taking one fails, the next call begins anew
        taken = spare if spare is not None else pynvml.nvmlGpmSampleAlloc()
        try:
            if self._instance is None:
                pynvml.nvmlGpmSampleGet(self._board, taken)
            else:
                pynvml.nvmlGpmMigSampleGet(self._board, self._instance, taken)
        except pynvml.NVMLError:
            pynvml.nvmlGpmSampleFree(taken)
            raise
        self._newer = taken
        return self._between(metrics) if self._older is not None else {}

    def close(self) -> None:
        """Gives the samples back."""
        samples, self._older, self._newer = (self._older, self._newer), None, None
        for sample in samples:
            if sample is not None:
                pynvml.nvmlGpmSampleFree(sample)

    def _between(self, metrics: Sequence[int]) -> Mapping[int, float]:
        request = pynvml.c_nvmlGpmMetricsGet_t()
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(metrics)
        request.sample1, request.sample2 = self._older, self._newer
        for index, metric in enumerate(metrics):
            request.metrics[index].metricId = metric
        pynvml.nvmlGpmMetricsGet(request)
        found = ((one.metricId, one.nvmlReturn, one.value) for one in request.metrics[: len(metrics)])
        return {metric: value for metric, code, value in found if code == pynvml.NVML_SUCCESS and math.isfinite(value)}
