"""`python -m demo`: shows the recorded pairs in TensorBoard, in this process. It needs neither torch nor a GPU."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from demo.pairs import PAIRS, RECORDED
from tb_bottleneck.plugin.http.static_files import DIRECTORY, ENTRY

PLUGIN = "tb_bottleneck"
HIGHEST_PORT = 65535


class CannotServe(Exception):
    """Something that has to be there is not; str() says what, where it was looked for, and what to do."""


def main(arguments: Sequence[str]) -> int:
    """Serve until Ctrl-C. Returns the exit status: 0, or 2 where nothing can be served."""
    options = _parser().parse_args(arguments)
    try:
        check_installation()
        check_logdir(options.logdir)
        url = start(options.logdir, options.host, options.port)
    except CannotServe as why:
        print(f"demo: {why}", file=sys.stderr)
        return 2
    print(f"Bottlenecks of {options.logdir}: {url}#{PLUGIN} (Ctrl-C ends it)", flush=True)
    wait_for_the_end()
    return 0


def check_installation(static: Path = DIRECTORY) -> None:
    """Raises CannotServe where TensorBoard would not find the plugin, or the plugin not its tab."""
    if PLUGIN not in {point.name for point in entry_points(group="tensorboard_plugins")}:
        raise CannotServe(
            f"TensorBoard finds its plugins among the installed packages, and {PLUGIN} is not installed for "
            f"{sys.executable}; in the checkout, run: pip install ."
        )
    if not (static / ENTRY).is_file():
        raise CannotServe(f"the tab is not built: there is no {static / ENTRY}; in the checkout, run: pip install .")


def check_logdir(logdir: Path) -> None:
    """Raises CannotServe where the folder is not there, or no trace is anywhere in it."""
    if not logdir.is_dir():
        raise CannotServe(f"there is no folder {logdir}; name one with --logdir, or record one: python -m demo record")
    if logdir == RECORDED and not any(logdir.rglob("*.pt.trace.json.gz")):
        raise CannotServe(f"there is no recording in {logdir}; make them: python -m demo record")


def start(logdir: Path, host: str, port: int | None) -> str:
    """Start TensorBoard's server in a thread and return its URL; without a port, the first free one from 6006 on.

    Raises CannotServe where the port is taken or the host is not one of this machine's.
    """
    from tensorboard import default, program  # half a second, which `--help` need not wait for

    server = program.TensorBoard(plugins=default.get_plugins())
    # Recordings of this size need no second process to read them, and its start would print a note.
    server.configure(logdir=str(logdir), host=host, port=port, load_fast="false")
    try:
        return str(server.launch())
    except program.TensorBoardServerException as error:
        raise CannotServe(f"{error.msg.rstrip('.')}; another one is chosen with --port or --host") from error


def wait_for_the_end() -> None:
    """Returns on Ctrl-C, and likewise where the process is asked to terminate."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the terminal's ^C gets a line of its own


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Shows recorded trainings in TensorBoard's Bottlenecks tab. Each illness is there twice:\n"
        "<illness>/slow as it was found, and <illness>/fixed with its cure switched on.\n\n"
        + "\n".join(f"  {pair.name:<24}{pair.shows}" for pair in PAIRS.values()),
        epilog="Open slow, read what it blames and what gain it promises, then compare with fixed.\n"
        "demo/recorded/recorded.json holds the true step times, taken without a profiler.\n"
        "Record the pairs on your own machine (needs torch): python -m demo record --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--logdir", type=Path, default=RECORDED, metavar="DIR", help="other traces to show")
    parser.add_argument("--host", default="localhost", help="the address to listen on (default: localhost only)")
    parser.add_argument("--port", type=_port, metavar="N", help="default: 6006, or the next that is free")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"wanted a port from 0 (any free one) to {HIGHEST_PORT}, got {text!r}")
    return int(text)
