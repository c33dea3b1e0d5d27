"""`python -m demo public`: downloads pinned public recordings of GPUs and shows them in TensorBoard.

A recording is stored only if its content has the pinned SHA-256 (pins.py, public.toml).
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

from demo import serve
from demo.download import CannotStore, NotDownloaded, Report, Unreachable, download
from demo.guide import OVERVIEW, TAB
from demo.pins import InvalidPin, Pin, difference, read_pins

GITHUB = "https://raw.githubusercontent.com"
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Downloads what is missing, then serves until Ctrl-C.

    Returns the exit status: 0, 1 if a recording is missing, 2 if nothing can be done, or 130 after Ctrl-C while
    downloading.
    """
    options = _parser().parse_args(arguments)
    try:
        pins = read_pins()
        print(*table_lines(pins, options.to), sep="\n", flush=True)
        if options.list:
            return 0
        if options.serve:
            serve.check_installation()
        missing = fetch_all(pins, options.to, options.base_url)
        print(*missing_lines(missing, options.to, options.base_url), sep="\n", end="", file=sys.stderr, flush=True)
        if options.serve and len(missing) < len(pins):
            _serve([pin for pin in pins if pin not in missing], options)
    except (serve.CannotServe, CannotStore, InvalidPin) as why:
        print(f"demo public: {why}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ndemo public: interrupted; the same command continues", file=sys.stderr)
        return INTERRUPTED
    return 1 if missing else 0


def table_lines(pins: Sequence[Pin], folder: Path) -> Iterator[str]:
    """Yields the table of the recordings, two lines for each, then the size of all and the folder."""
    yield f"{'recording':<32}{'GPU':<13}{'size':>8}  {'licence':<14}repository@commit"
    for pin in pins:
        yield (
            f"{pin.name:<32}{pin.gpu:<13}{_megabytes(pin.size):>8}  {pin.licence:<14}{pin.repository}@{pin.commit[:12]}"
        )
        yield f"    {pin.shows}"
    yield ""
    total = _megabytes(sum(pin.size for pin in pins))
    yield f"{len(pins)} recordings, {total} of JSON. Files that are stored compressed (.gz) have fewer bytes."
    yield f"Folder: {folder}"
    yield ""


def fetch_all(pins: Sequence[Pin], folder: Path, base: str) -> dict[Pin, str]:
    """Downloads the recordings that are not in the folder yet. Returns the missing ones, each with the reason.

    Without a connection, the remaining ones are only looked for in the folder. Raises CannotStore.
    """
    missing: dict[Pin, str] = {}
    lost = ""
    for pin in pins:
        try:
            if _is_stored(pin, folder):
                print(f"{pin.name}: already downloaded", file=sys.stderr)
            elif lost:
                missing[pin] = lost
            else:
                fetch(pin, folder, base)
        except NotDownloaded as why:
            missing[pin] = str(why)
            print(f"{_start_of_line()}{pin.name}: {why}", file=sys.stderr, flush=True)
            if isinstance(why, Unreachable):
                lost = str(why)
    return missing


def fetch(pin: Pin, folder: Path, base: str) -> None:
    """Downloads one recording into its place in the folder, if its content is the pinned one.

    Raises NotDownloaded, and CannotStore.
    """
    target = pin.file(folder)
    partial = target.with_name(target.name + ".partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        download(pin.url(base), partial, pin.size, _progress(pin.name))
        size = partial.stat().st_size
        if wrong := difference(partial, pin):
            partial.unlink()
            raise NotDownloaded(f"the downloaded file is not the pinned one ({wrong}); it was deleted")
        os.replace(partial, target)
    except OSError as error:
        raise CannotStore(f"{target}: {error.strerror or error}") from error
    print(f"{_start_of_line()}{pin.name}: downloaded, {_megabytes(size)}", file=sys.stderr, flush=True)


def missing_lines(missing: dict[Pin, str], folder: Path, base: str) -> Iterator[str]:
    """Yields which recordings are missing, where they were looked for, and what helps; nothing if all are there."""
    if not missing:
        return
    yield f"\ndemo public: {len(missing)} recordings are missing. Looked for:"
    for pin, why in missing.items():
        yield f"  {pin.name}: {why}"
        yield f"    at {pin.url(base)}"
        yield f"    in {pin.file(folder)}"
    yield "What to do next, one of:"
    yield "  - Check the connection (https_proxy names a proxy), and run the same command again: it continues."
    yield "  - Name a server with the same paths: --base-url URL"
    yield "  - Download the files by hand, put them at the paths above, and run the same command again.\n"


def _is_stored(pin: Pin, folder: Path) -> bool:
    """Returns True if the recording is there with the pinned content. Deletes a file with another content."""
    target = pin.file(folder)
    try:
        wrong = difference(target, pin)
        if wrong:
            print(f"{target} is not the pinned recording ({wrong}); it was deleted", file=sys.stderr)
            target.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise CannotStore(f"{target}: {error.strerror or error}") from error
    return wrong is None


def _serve(pins: Sequence[Pin], options: argparse.Namespace) -> None:
    url = serve.start(options.to, options.host, options.port)
    print("Recordings; in the tab, compare before with after:")
    for pin in pins:
        key = pin.file(options.to).relative_to(options.to).as_posix()
        print(f"  {pin.name}\n    {url}{TAB}&p.tb_bottleneck.run={quote(key)}")
    print(f"\nAll recordings: {url}{OVERVIEW} (press Ctrl-C to quit)", flush=True)
    serve.wait_for_the_end()


def _progress(name: str) -> Report:
    """Returns a function that shows the progress on a terminal, and nothing elsewhere."""

    def show(have: int, total: int | None) -> None:
        share = f" of {_megabytes(total)} ({have * 100 // total}%)" if total else ""
        print(f"{_start_of_line()}{name}: {_megabytes(have)}{share}", end="", file=sys.stderr, flush=True)

    return show if sys.stderr.isatty() else lambda _have, _total: None


def _start_of_line() -> str:
    """Returns what overwrites the line of the progress on a terminal."""
    return "\r\x1b[K" if sys.stderr.isatty() else ""


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def cache_folder() -> Path:
    """Returns the default folder: in XDG_CACHE_HOME if it is an absolute path, else in ~/.cache."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "tb_bottleneck" / "public"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m demo public",
        description="Download recordings of GPUs (V100 to H100, MI300X, RTX) from public repositories on GitHub, and\n"
        "show them in TensorBoard. --list prints what they are, their licences and their sizes. Each file is pinned\n"
        "by its commit and by the SHA-256 of its JSON, and is downloaded once. An interrupted call can be resumed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="print the table of the recordings and stop")
    parser.add_argument(
        "--to", type=Path, default=cache_folder(), metavar="DIR", help="where to store them (default: %(default)s)"
    )
    parser.add_argument(
        "--base-url", type=_server, default=GITHUB, metavar="URL", help="a server with the paths of %(default)s"
    )
    parser.add_argument("--no-serve", dest="serve", action="store_false", help="only download")
    serve.add_address_options(parser)
    return parser


def _server(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"expected an address that begins with http:// or https://, got {text!r}")
    return text.rstrip("/")
