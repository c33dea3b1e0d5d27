"""Reads a monitor's output event by event, as TensorBoard's own loader does."""

from dataclasses import dataclass, field
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG
from tb_bottleneck.schema.telemetry_pb2 import Packet, RunContext


@dataclass
class Written:
    """The content of all event files in a directory."""

    contexts: list[RunContext] = field(default_factory=list)
    packets: list[Packet] = field(default_factory=list)
    scalars: dict[str, list[tuple[int, float]]] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        return [note.code for packet in self.packets for note in packet.notes]

    @property
    def numbers(self) -> list[int]:
        return [number for packet in self.packets for number in packet.steps.number]

    @property
    def facts(self) -> dict[str, object]:
        return dict(self.contexts[-1].facts)

    def column(self, name: str) -> list[float]:
        return [
            value for packet in self.packets for one in packet.steps.columns if one.name == name for value in one.values
        ]

    def series(self, name: str) -> list[float]:
        return [value for packet in self.packets for one in packet.series if one.name == name for value in one.values]


def event_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*tfevents*"))


def read(directory: Path) -> Written:
    written = Written()
    for path in event_files(directory):
        for raw in RawEventFileLoader(str(path)).Load():
            event = Event.FromString(raw)
            for value in event.summary.value:
                if value.tag == CONTEXT_TAG:
                    written.contexts.append(RunContext.FromString(value.tensor.string_val[0]))
                elif value.tag == PACKET_TAG:
                    written.packets.append(Packet.FromString(value.tensor.string_val[0]))
                else:
                    written.scalars.setdefault(value.tag, []).append((event.step, value.simple_value))
    return written
