"""Measures of the network that NCCL uses, from facts of the monitor (monitor/facts/nccl.py), which are untrusted."""

from typing import Any

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.trace.kernel_names import cut

MAX_LISTED = 4
NO_LOG = Missing("NCCL's log was not recorded; tb-bottleneck run --nccl-log writes it")


def nccl_network(recording: Recording) -> Measure | Missing:
    """The network that NCCL uses between hosts, as text, such as "sockets on eth0"."""
    nccl = _nccl(recording)
    name = nccl.get("network")
    if not isinstance(name, str):
        return NO_LOG
    devices = [cut(each) for each in _list(nccl.get("devices")) if isinstance(each, str)]
    network = "sockets" if name == "Socket" else cut(name)
    return text_measure(f"{network} on {_listed(devices)}" if devices else network)


def socket_channels(recording: Recording) -> Measure | Missing:
    """Number of NCCL's channels to other hosts that use sockets (count)."""
    transports = _nccl(recording).get("transports")
    if not isinstance(transports, dict):
        return NO_LOG
    number = transports.get("NET/Socket", 0)
    return Measure(float(number if isinstance(number, int) else 0), "count", source="context")


def active_ports(recording: Recording) -> Measure | Missing:
    """The active InfiniBand and RoCE ports of the machine, as text."""
    ports = [cut(each) for each in _list(recording.trace.header.context.get("active_ports")) if isinstance(each, str)]
    return text_measure(_listed(ports), len(ports)) if ports else Missing("no active InfiniBand port is known")


def network_settings(recording: Recording) -> Measure | Missing:
    """The settings of the environment that choose NCCL's transport, as text."""
    settings = _nccl(recording).get("settings")
    named = [cut(f"{name}={value}") for name, value in settings.items()] if isinstance(settings, dict) else []
    return text_measure(_listed(named)) if named else Missing("no setting chooses NCCL's transport")


def _nccl(recording: Recording) -> dict[Any, Any]:
    found = recording.trace.header.context.get("nccl")
    return found if isinstance(found, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return "; ".join(texts[:MAX_LISTED]) + more
