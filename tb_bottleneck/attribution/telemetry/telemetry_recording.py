"""The telemetry of one process with the data derived from it. For a trace, the class Recording has this role."""

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
    """The windows, signals and accounts of one process. Signals and accounts are computed on first use and cached."""

    def __init__(self, telemetry: Telemetry, since: int = 0) -> None:
        """Uses all telemetry, or, if `since` (ns since 1970) is given, only what ended after `since`."""
        self.telemetry = telemetry
        self.windows = Windows(telemetry, since)
        self.facts: dict[str, Any] = telemetry.facts

    @cached_property
    def signals(self) -> Signals:
        """The signals of each window, such as the host time in the loader as a share of the window's time."""
        return signals_of(self.windows)

    @cached_property
    def bounds(self) -> DeviceBounds:
        """What limits the device's own work in each window, estimated from counters."""
        return bounds_of(self.windows, self.signals)

    @cached_property
    def accounts(self) -> Accounts:
        """The account of each window: the share of each regime in the time of the window."""
        return accounts_of(self.signals, self.bounds, self.on_device)

    @cached_property
    def excess(self) -> Excess:
        """The irregular steps, and for each the time by which it exceeds the usual step."""
        return excess_of(self.windows)

    @cached_property
    def account(self) -> Account:
        """The time of all windows together by regime. The times of the regimes are whole ns and sum to the time of the
        windows."""
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
        """A text for the user that says why the device's idle time is not known."""
        if self.on_device:
            return "neither gpu_utilisation nor device_busy was recorded"
        missing = [name for name in ("loader_wait", *PHASES) if isinstance(self.per_step(name, "ns"), Missing)]
        return f"not recorded: {', '.join(missing)}" if missing else "no step was timed"

    @property
    def steps(self) -> range:
        """The indices of the steps in the windows, from 0."""
        return range(int(self.windows.steps.sum()))

    def mean(self, values: Floats, unit: str, missing: str, per: str = "") -> Measure | Missing:
        """Returns the mean of `values` (one per window, NaN if unknown), weighted by the time of the windows.

        Returns Missing with the reason `missing` if no window has a value. `unit` and `per` are as in Measure.
        """
        counts = ~np.isnan(values) & (self.signals.weight > 0)
        if not counts.any():
            return Missing(missing)
        mean = float(np.average(values[counts], weights=self.signals.weight[counts]))
        return Measure(mean, unit, per, int(counts.sum()), EVIDENCE_SOURCE)

    def of_series(self, name: str, unit: str, of_device: bool = False) -> Measure | Missing:
        """Returns the mean of the time series `name` over all windows, or Missing if the series was not recorded.

        If `of_device` is True, the series of the device is used. `unit` is as in Measure.
        """
        return self.mean(self.windows.mean(name, of_device), unit, self.why_missing(name))

    def while_starved(self, values: Floats, unit: str, missing: str) -> Measure | Missing:
        """Returns the mean of `values`, weighted by the time in each window in which the device waited for input.

        If the device never waited for input, returns the result of `mean`. The arguments are those of `mean`.
        """
        starved = self.signals.weight * self.accounts.shares[Regime.INPUT]
        counts = ~np.isnan(values) & (starved > 0)
        if not counts.any():
            return self.mean(values, unit, missing)
        mean = float(np.average(values[counts], weights=starved[counts]))
        return Measure(mean, unit, "", int(counts.sum()), EVIDENCE_SOURCE)

    def per_step(self, column: str, unit: str) -> Measure | Missing:
        """Returns the mean per step of the step column `column`, or Missing if the column was not recorded.

        `unit` is as in Measure.
        """
        total, steps = self.windows.total(column), self.windows.steps
        is_known = ~np.isnan(total)
        if not steps[is_known].sum():
            return Missing(self.why_missing(column))
        count = int(steps[is_known].sum())
        return Measure(float(total[is_known].sum()) / count, unit, "step", count, EVIDENCE_SOURCE)

    def fact(self, name: str) -> float | None:
        """Returns the fact `name` of the run; None if the fact is missing or is not a number."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def why_missing(self, name: str) -> str:
        """Returns a text that says that the signal `name` is missing, with the reason if the monitor recorded one."""
        explanation = next((u.because for u in self.telemetry.context.unsupported if u.name == name and u.because), "")
        return f"{name} was not recorded" + (f" ({explanation.rstrip('.')[:200]})" if explanation else "")
