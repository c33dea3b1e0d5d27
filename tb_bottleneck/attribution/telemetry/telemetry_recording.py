"""What one process's telemetry says, over all of it: the counterpart of a trace's recording."""

from functools import cached_property
from typing import Any

import numpy as np

from tb_bottleneck.attribution.account import Account, account_of
from tb_bottleneck.attribution.telemetry.device_bound import Bounds, bounds_of
from tb_bottleneck.attribution.telemetry.window_accounts import Accounts, accounts_of
from tb_bottleneck.attribution.telemetry.window_signals import Excess, Signals, excess_of, signals_of
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.regime import Regime
from tb_bottleneck.telemetry.bounded_columns import Floats
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.telemetry.windows import Windows

EVIDENCE_SOURCE = "telemetry"


class TelemetryRecording:
    """Windows, signals and accounts of one process; everything is taken once and kept."""

    def __init__(self, telemetry: Telemetry, since: int = 0) -> None:
        """Of all of it, or of what ended after `since`, ns since 1970."""
        self.telemetry = telemetry
        self.windows = Windows(telemetry, since)
        self.facts: dict[str, Any] = telemetry.facts

    @cached_property
    def signals(self) -> Signals:
        """What each window tells."""
        return signals_of(self.windows)

    @cached_property
    def bounds(self) -> Bounds:
        """What bounds the device's own work in each window."""
        return bounds_of(self.windows, self.signals)

    @cached_property
    def accounts(self) -> Accounts:
        """Who owns each window."""
        return accounts_of(self.signals, self.bounds, self.on_device)

    @cached_property
    def excess(self) -> Excess:
        """The steps off the cadence."""
        return excess_of(self.windows)

    @cached_property
    def account(self) -> Account:
        """Who owns the judged time, whole nanoseconds that sum to it."""
        window = int(np.nansum(self.signals.weight)) or 1
        ns = {regime: int(share * window) for regime, share in self.accounts.whole().items()}
        ns[Regime.UNEXPLAINED] += window - sum(ns.values())
        return account_of(window, ns)

    @cached_property
    def on_device(self) -> bool:
        """Whether an accelerator is there for this run; else the CPU is the device."""
        told = bool((~np.isnan(self.signals.span)).any())
        return self.windows.device is not None or told or self.facts.get("device_kind") in ("cuda", "rocm")

    @property
    def steps(self) -> range:
        """The judged steps, counted."""
        return range(int(self.windows.steps.sum()))

    def mean(self, values: Floats, unit: str, missing: str, per: str = "") -> Measure | Missing:
        """The mean over the windows that know it, each by its weight; else what is missing."""
        counts = ~np.isnan(values) & (self.signals.weight > 0)
        if not counts.any():
            return Missing(missing)
        mean = float(np.average(values[counts], weights=self.signals.weight[counts]))
        return Measure(mean, unit, per, int(counts.sum()), EVIDENCE_SOURCE)

    def of_series(self, name: str, unit: str, of_device: bool = False) -> Measure | Missing:
        """The mean of a series over the judged time."""
        return self.mean(self.windows.mean(name, of_device), unit, self.why_missing(name))

    def while_starved(self, values: Floats, unit: str, missing: str) -> Measure | Missing:
        """The mean over the windows, each by the time that the device starved in it: what the loader did then.

        A run that never starves gives the mean over all of it.
        """
        starved = self.signals.weight * self.accounts.shares[Regime.INPUT]
        counts = ~np.isnan(values) & (starved > 0)
        if not counts.any():
            return self.mean(values, unit, missing)
        mean = float(np.average(values[counts], weights=starved[counts]))
        return Measure(mean, unit, "", int(counts.sum()), EVIDENCE_SOURCE)

    def per_step(self, column: str, unit: str) -> Measure | Missing:
        """The mean of a step column over the judged steps."""
        total, steps = self.windows.total(column), self.windows.steps
        known = ~np.isnan(total)
        if not steps[known].sum():
            return Missing(self.why_missing(column))
        count = int(steps[known].sum())
        return Measure(float(total[known].sum()) / count, unit, "step", count, EVIDENCE_SOURCE)

    def fact(self, name: str) -> float | None:
        """A number of the run's context; None where it is not there or no number."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def why_missing(self, name: str) -> str:
        """Why a signal is not there, in the monitor's words where it said so."""
        said = next((u.because for u in self.telemetry.context.unsupported if u.name == name and u.because), "")
        return f"{name} was not recorded" + (f" ({said.rstrip('.')[:200]})" if said else "")
