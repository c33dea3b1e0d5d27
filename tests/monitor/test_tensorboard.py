"""Both of TensorBoard's loaders show a logdir with the monitor's and the training's own scalars."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from monitor.training import STEPS, Training
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from tensorboard.data import provider as provider_api

from tb_bottleneck import Monitor
from tb_bottleneck.schema.signals import CONTEXT_TAG, PACKET_TAG, PLUGIN_NAME
from tb_bottleneck.schema.telemetry_pb2 import Packet

USERS = [10.0, 20.0, 30.0]


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """A run that logs a loss with TensorBoard's own writer, monitored into the same logdir."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from tb_bottleneck.monitor.writer.encode import scalars_event

    writer = EventFileWriter(str(tmp_path / "mine"))
    with Monitor(tmp_path / "mine", captures=0, every_s=0.1):
        for step, loss in enumerate(USERS):
            Training().run()
            writer.add_event(Event.FromString(scalars_event({"loss": loss}, step)))
    writer.close()
    return tmp_path


def both_are_there(provider: provider_api.DataProvider) -> None:
    context, none = RequestContext(), {"experiment_id": ""}
    listed = provider.list_scalars(context, plugin_name="scalars", **none)
    (ours,) = [run for run in listed if "tb_bottleneck" in run]
    assert ours.startswith("mine/tb_bottleneck/")
    assert {"bottleneck/step_time_ms", "bottleneck/loader_share"} <= set(listed[ours])
    points = provider.read_scalars(context, plugin_name="scalars", downsample=100, **none)
    assert [point.value for point in points["mine"]["loss"]] == USERS
    tensors: Any = provider.read_tensors(context, plugin_name=PLUGIN_NAME, downsample=1000, **none)[ours]
    assert set(tensors) == {CONTEXT_TAG, PACKET_TAG}
    packets = [Packet.FromString(point.numpy.item()) for point in tensors[PACKET_TAG]]
    assert {number for packet in packets for number in packet.steps.number} <= set(range(3 * STEPS))
    assert packets[-1].sequence == max(packet.sequence for packet in packets)


def test_the_python_loader(logdir: Path) -> None:
    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(logdir))
    multiplexer.Reload()
    both_are_there(MultiplexerDataProvider(multiplexer, str(logdir)))


def test_the_rust_loader(logdir: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = pytest.importorskip("tensorboard_data_server").server_binary()
    if server is None:
        pytest.skip("there is no data server for this system")
    import grpc
    from tensorboard.data.grpc_provider import GrpcDataProvider, make_stub

    port_file = tmp_path_factory.mktemp("port") / "port"
    command = [server, f"--logdir={logdir}", "--port=0", f"--port-file={port_file}", "--die-after-stdin", "--reload=1"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            end = time.monotonic() + 60
            while not (port_file.exists() and port_file.read_text().endswith("\n")) and time.monotonic() < end:
                time.sleep(0.05)
            with grpc.insecure_channel(f"localhost:{port_file.read_text().strip()}") as channel:
                provider = GrpcDataProvider(f"localhost:{port_file.read_text().strip()}", make_stub(channel))
                listed: Any = {}
                while len(listed) < 2 and time.monotonic() < end:
                    listed = provider.list_scalars(RequestContext(), experiment_id="", plugin_name="scalars")
                    time.sleep(0.05)
                both_are_there(provider)
        finally:
            process.kill()
