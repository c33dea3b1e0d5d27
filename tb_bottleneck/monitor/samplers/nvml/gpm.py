"""GPU performance monitoring (GPM, Hopper and newer): metrics between two samples of the driver."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pynvml


class GpmSamples:
    """The two samples of one GPU; each call replaces the older one. Raises pynvml's errors."""

    def __init__(self, board: Any, instance: int | None) -> None:
        self._board = board
        self._instance = instance
        self._older: Any = None
        self._newer: Any = None

    def since_last(self, metrics: Sequence[int]) -> Mapping[int, float]:
        """Returns values by metric id, without unsupported ones; empty at the first call."""
        spare, self._older = self._older, self._newer
        self._newer = None  # after an error, the next call starts again
        sample = spare if spare is not None else pynvml.nvmlGpmSampleAlloc()
        try:
            if self._instance is None:
                pynvml.nvmlGpmSampleGet(self._board, sample)
            else:
                pynvml.nvmlGpmMigSampleGet(self._board, self._instance, sample)
        except pynvml.NVMLError:
            pynvml.nvmlGpmSampleFree(sample)
            raise
        self._newer = sample
        return self._between(metrics) if self._older is not None else {}

    def close(self) -> None:
        """Frees the samples."""
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
        results = ((metric.metricId, metric.nvmlReturn, metric.value) for metric in request.metrics[: len(metrics)])
        return {
            number: value for number, code, value in results if code == pynvml.NVML_SUCCESS and math.isfinite(value)
        }
