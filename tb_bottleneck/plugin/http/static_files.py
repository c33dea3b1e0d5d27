"""Serves the files of the built tab by name, and decides which host names a client may use for this server.

The files lie in one flat directory.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

HOSTS_VARIABLE = "TB_BOTTLENECK_HOSTS"
"""Environment variable with additional accepted names, separated by commas: `tb.example.com`, `.example.com` for this
name and all names below it, or `*` for all names."""

# Endings that public DNS does not have: those of RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`, and those that
# Kubernetes and routers use.
_PRIVATE_ENDINGS = ("localhost", "local", "internal", "home.arpa", "lan", "svc", "test")
# Services that forward to a user's notebook or port. Only the service chooses where a name below its own name leads.
_NOTEBOOK_ENDINGS = (
    "googleusercontent.com",
    "colab.dev",
    "devtunnels.ms",
    "app.github.dev",
    "gitpod.io",
    "notebooks.azure.net",
)
_PROXY_VARIABLES = ("TENSORBOARD_PROXY_URL", "JUPYTERHUB_PUBLIC_URL", "JUPYTERHUB_PUBLIC_HUB_URL", "VSCODE_PROXY_URI")
"""Environment variables in which notebook servers state the address that their users see."""

_NAME = re.compile(r"[a-z0-9_.-]{1,253}")


class HostPolicy:
    """The names that a client may use for this server, as a protection against DNS rebinding.

    A web page of an attacker can let its own name resolve to this machine, and then read what TensorBoard answers to
    the browser. The browser sends the attacker's name as Host. Therefore a request is answered only if its Host is a
    name that an attacker cannot choose: an address, a name of this machine, a name that public DNS does not have, or a
    configured name.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        names = {name.strip().lower().rstrip(".") for name in names}
        self._any = "*" in names
        self._names = frozenset(name for name in names if name and not name.startswith("."))
        self._endings = (*_PRIVATE_ENDINGS, *_NOTEBOOK_ENDINGS, *(name[1:] for name in names if name.startswith(".")))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, host: str = "") -> "HostPolicy":
        """Returns the policy that the environment variables in `environment` configure. `host` is TensorBoard's own
        `--host`."""
        proxies = (_host_of(environment.get(name, "")) for name in _PROXY_VARIABLES)
        return cls([host, *proxies, *environment.get(HOSTS_VARIABLE, "").split(",")])

    def accepts(self, host: str) -> bool:
        """Returns True if the Host header `host` has an accepted name, or is empty. HTTP/1.0 requests may have no Host,
        and no browser sends such requests."""
        name = _name_of(host)
        if self._any or not host or _is_address(name):
            return True
        if not _NAME.fullmatch(name):
            return False
        if "." not in name or name in self._names:
            return True  # a name without a dot is looked up only in the local network
        return any(name == end or name.endswith(f".{end}") for end in self._endings) or name in _own_names()


def refusal(host: str) -> str:
    """Returns the error message for a request whose Host header `host` is not accepted."""
    return (
        f"The Bottlenecks tab does not answer under the name {_name_of(host)[:100]!r}: it may belong to someone else "
        f"(DNS rebinding). If it is yours, start TensorBoard with {HOSTS_VARIABLE}={_name_of(host)[:100]}"
    )


def _name_of(host: str) -> str:
    """Returns the name in a Host header of the form `name:port` or `[address]:port`, in lower case."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return (name.rpartition(":")[0] if re.search(r":\d*$", name) else name).rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@cache
def _own_names() -> frozenset[str]:
    """Returns the host names of this machine, in lower case."""
    names = {socket.gethostname()}
    with suppress(OSError):  # the resolver is broken
        names.add(socket.getfqdn())
    return frozenset(name.lower().rstrip(".") for name in names)


DIRECTORY = Path(__file__).parents[1] / "static"
ENTRY = "index.js"

# No separator and no leading dot: a name cannot leave the directory.
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}

_NOT_BUILT = """\
export function render() {
  document.body.textContent =
    "The Bottlenecks tab was not built into this installation of tb_bottleneck. " +
    "Run `pip install .` in the checkout; it builds the tab with npm, or with a downloaded Node.js if npm is missing.";
}
"""


def read(name: str, directory: Path = DIRECTORY) -> tuple[bytes, str] | None:
    """Returns (content, media type) of the file `name` in `directory`, or None if there is no such file.

    If the tab was not built, the entry module is a stub that tells the user how to build it.
    """
    media_type = _TYPES.get(Path(name).suffix)
    if not _FILE_NAME.fullmatch(name) or media_type is None:
        return None
    try:
        return (directory / name).read_bytes(), media_type
    except OSError:
        return (_NOT_BUILT.encode(), media_type) if name == ENTRY else None
