"""`python -m demo`: shows the recorded pairs in TensorBoard, in this process. Needs neither torch nor a GPU."""

import argparse
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from demo.guide import guide
from demo.index import read_index
from demo.pairs import PAIRS, RECORDED
from tb_bottleneck.plugin.http.static_files import DIRECTORY, ENTRY

PLUGIN = "tb_bottleneck"
HIGHEST_PORT = 65535


class CannotServe(Exception):
    """A requirement is missing; str() names it, the place that was searched, and a solution."""


def main(arguments: Sequence[str]) -> int:
    """Serves until Ctrl-C. Returns the exit status: 0, or 2 if nothing can be served."""
    options = _parser().parse_args(arguments)
    try:
        check_installation()
        check_logdir(options.logdir)
        url = start(options.logdir, options.host, options.port)
    except CannotServe as why:
        print(f"demo: {why}", file=sys.stderr)
        return 2
    print(*guide(options.logdir, url), sep="\n", flush=True)
    wait_for_the_end()
    return 0


def check_installation(static: Path = DIRECTORY) -> None:
    """Raises CannotServe if TensorBoard would not find the plugin, or the plugin not its tab."""
    if PLUGIN not in {point.name for point in entry_points(group="tensorboard_plugins")}:
        raise CannotServe(
            f"TensorBoard finds its plugins among the installed packages, and {PLUGIN} is not installed for "
            f"{sys.executable}; in the checkout, run: pip install ."
        )
    if not (static / ENTRY).is_file():
        raise CannotServe(f"the tab is not built: there is no {static / ENTRY}; in the checkout, run: pip install .")


def check_logdir(logdir: Path) -> None:
    """Raises CannotServe if the folder does not exist, or the default folder contains no trace."""
    if not logdir.is_dir():
        raise CannotServe(f"there is no folder {logdir}; pass one with --logdir, or record one: python -m demo record")
    if logdir == RECORDED and not any(logdir.rglob("*.pt.trace.json.gz")):
        raise CannotServe(f"there is no recording in {logdir}; create recordings: python -m demo record")


def start(logdir: Path, host: str, port: int | None) -> str:
    """Starts TensorBoard's server in a thread and returns its URL. Without a port, uses the first free one from 6006.

    Raises CannotServe if the port is taken, or the host is not an address of this machine.
    """
    from tensorboard import default, program  # the import takes half a second, which `--help` does not need

    server = program.TensorBoard(plugins=default.get_plugins())
    # Recordings of this size need no second process for reading, and its start would print a message.
    server.configure(logdir=str(logdir), host=host, port=port, load_fast="false")
    try:
        return str(server.launch())
    except program.TensorBoardServerException as error:
        raise CannotServe(f"{error.msg.rstrip('.')}; choose another one with --port or --host") from error


def wait_for_the_end() -> None:
    """Returns on Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the terminal's ^C gets a line of its own


def problem_lines(logdir: Path) -> Iterator[str]:
    """Yields the recorded problems with what they show, then the names of those that are not recorded."""
    recorded = read_index(logdir)["pairs"]
    for pair in PAIRS.values():
        if pair.name in recorded:
            yield f"  {pair.name:<26}{pair.shows}"
    needs = {pair.needs: None for pair in PAIRS.values() if pair.name not in recorded}
    if needs:
        yield ""
        yield "Not recorded here; python -m demo record records them. Needed:"
    for need in needs:
        names = [pair.name for pair in PAIRS.values() if pair.name not in recorded and pair.needs == need]
        yield from textwrap.wrap(f"{need}: {', '.join(names)}", 78, initial_indent="  ", subsequent_indent="    ")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Shows recorded trainings in TensorBoard's Bottlenecks tab. Each problem is recorded twice:\n"
        "<problem>/slow without the fix, and <problem>/fixed with it.\n\n" + "\n".join(problem_lines(RECORDED)),
        epilog="Open slow, read the cause and the expected gain, then compare with fixed.\n"
        "demo/recorded/recorded.json contains the true step times, measured without a profiler.\n"
        "Record the pairs on your own machine (needs torch): python -m demo record --help\n"
        "Download recordings of GPUs, from public repositories: python -m demo public --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--logdir", type=Path, default=RECORDED, metavar="DIR", help="other traces to show")
    add_address_options(parser)
    return parser


def add_address_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options --host and --port, for `start`."""
    parser.add_argument("--host", default="localhost", help="the address to listen on (default: localhost only)")
    parser.add_argument("--port", type=_port, metavar="N", help="default: 6006, or the next that is free")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"expected a port from 0 (any free one) to {HIGHEST_PORT}, got {text!r}")
    return int(text)
