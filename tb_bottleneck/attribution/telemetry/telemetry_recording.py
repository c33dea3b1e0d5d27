"""The telemetry of one process with its derived data: the counterpart of a trace's Recording."""

from functools import cached_property
from typing import Any

import numpy as np

from tb_bottleneck.attribution.owned_spans import Account, account_of
from tb_bottleneck.attribution.telemetry.window_accounts import Accounts, DeviceBounds, accounts_of, bounds_of
from tb_bottleneck.attribution.telemetry.window_signals import PHASES, Excess, Signals, excess_of, signals_of
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.telemetry.bounded_columns import Floats
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.telemetry.windows import Windows

EVIDENCE_SOURCE = "telemetry"


class TelemetryRecording:
    """Windows, signals and accounts of one process. Everything is computed on first use and cached."""

    def __init__(self, telemetry: Telemetry, since: int = 0) -> None:
        """Uses all telemetry, or only what ended after `since`, in ns since 1970."""
        self.telemetry = telemetry
        self.windows = Windows(telemetry, since)
        self.facts: dict[str, Any] = telemetry.facts

    @cached_property
    def signals(self) -> Signals:
        """The signals of each window."""
        return signals_of(self.windows)

    @cached_property
    def bounds(self) -> DeviceBounds:
        """The bounds of the device's own work in each window."""
        return bounds_of(self.windows, self.signals)

    @cached_property
    def accounts(self) -> Accounts:
        """The account of each window."""
        return accounts_of(self.signals, self.bounds, self.on_device)

    @cached_property
    def excess(self) -> Excess:
        """The irregular steps."""
        return excess_of(self.windows)

    @cached_property
    def account(self) -> Account:
        """The account of the judged time, in whole nanoseconds that sum to it."""
        window = int(np.nansum(self.signals.weight)) or 1
        ns = {regime: int(share * window) for regime, share in self.accounts.whole().items()}
        ns[Regime.UNEXPLAINED] += window - sum(ns.values())
        return account_of(window, ns)

    @cached_property
    def on_device(self) -> bool:
        """True if the run has an accelerator; otherwise, the CPU is the device."""
        has_span = bool((~np.isnan(self.signals.span)).any())
        return self.windows.device is not None or has_span or self.facts.get("device_kind") in ("cuda", "rocm")

    @property
    def idle_missing(self) -> str:
        """The reason why the device's idle time is not known."""
        if self.on_device:
            return "neither gpu_utilisation nor device_busy was recorded"
        missing = [name for name in ("loader_wait", *PHASES) if isinstance(self.per_step(name, "ns"), Missing)]
        return f"not recorded: {', '.join(missing)}" if missing else "no step was timed"

    @property
    def steps(self) -> range:
        """The indices of the judged steps."""
        return range(int(self.windows.steps.sum()))

    def mean(self, values: Floats, unit: str, missing: str, per: str = "") -> Measure | Missing:
        """Returns the weighted mean over the windows with a value, or Missing if there are none."""
        counts = ~np.isnan(values) & (self.signals.weight > 0)
        if not counts.any():
            return Missing(missing)
        mean = float(np.average(values[counts], weights=self.signals.weight[counts]))
        return Measure(mean, unit, per, int(counts.sum()), EVIDENCE_SOURCE)

    def of_series(self, name: str, unit: str, of_device: bool = False) -> Measure | Missing:
        """Returns the mean of a series over the judged time."""
        return self.mean(self.windows.mean(name, of_device), unit, self.why_missing(name))

    def while_starved(self, values: Floats, unit: str, missing: str) -> Measure | Missing:
        """Returns the mean over the windows, weighted by the time in which the device waited for input.

        If the device never waited for input, returns the mean over the whole run.
        """
        starved = self.signals.weight * self.accounts.shares[Regime.INPUT]
        counts = ~np.isnan(values) & (starved > 0)
        if not counts.any():
            return self.mean(values, unit, missing)
        mean = float(np.average(values[counts], weights=starved[counts]))
        return Measure(mean, unit, "", int(counts.sum()), EVIDENCE_SOURCE)

    def per_step(self, column: str, unit: str) -> Measure | Missing:
        """Returns the mean of a step column over the judged steps."""
        total, steps = self.windows.total(column), self.windows.steps
        is_known = ~np.isnan(total)
        if not steps[is_known].sum():
            return Missing(self.why_missing(column))
        count = int(steps[is_known].sum())
        return Measure(float(total[is_known].sum()) / count, unit, "step", count, EVIDENCE_SOURCE)

    def fact(self, name: str) -> float | None:
        """Returns a number from the run's facts; None if it is missing or not a number."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def why_missing(self, name: str) -> str:
        """Returns the reason why a signal is missing, with the monitor's explanation if it recorded one."""
        explanation = next((u.because for u in self.telemetry.context.unsupported if u.name == name and u.because), "")
        return f"{name} was not recorded" + (f" ({explanation.rstrip('.')[:200]})" if explanation else "")
