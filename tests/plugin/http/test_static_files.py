"""Tests of the static files and of the host names that clients may use, against DNS rebinding.

The files have names and media types; a stub stands in for a missing build.
"""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import tb_bottleneck.plugin
from tb_bottleneck.plugin.http import static_files
from tb_bottleneck.plugin.http.static_files import HostPolicy
from tests.plugin.tenant import Tenant

MoveIn = Callable[..., Tenant]

ACCEPTED = [
    "",
    "localhost",
    "localhost:6006",
    "LOCALHOST:6006",
    "tb.localhost",
    "127.0.0.1:6006",
    "10.1.2.3",
    "[::1]:6006",
    "[fe80::1%eth0]:6006",
    "gpu-box:6006",
    "gpu_box",
    f"{socket.gethostname()}:6006",
    f"{socket.getfqdn()}:6006",
    "gpu-box.local",
    "tensorboard.team.svc.cluster.local:80",
    "node1.internal",
    "abc-6006-colab.googleusercontent.com",
    "6006-m-s-abc.us-central1-0.prod.colab.dev",
    "name-6006.app.github.dev",
]
REFUSED = [
    "evil.example",
    "evil.example:6006",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evilgoogleusercontent.com",
    "local.evil",
    "a b.local",
    "evil.example\\.local/",
    "@localhost.evil.example",
]


@pytest.mark.parametrize("host", ACCEPTED)
def test_names_that_nobody_else_can_choose_are_accepted(host: str) -> None:
    assert HostPolicy().accepts(host)


@pytest.mark.parametrize("host", REFUSED)
def test_other_names_are_refused_unless_all_are_allowed(host: str) -> None:
    assert not HostPolicy().accepts(host)
    assert HostPolicy.from_environment({"TB_BOTTLENECK_HOSTS": "*"}).accepts(host)


def test_names_are_added_by_the_setting_the_option_and_the_notebook_server() -> None:
    policy = HostPolicy.from_environment(
        {
            "TB_BOTTLENECK_HOSTS": "tb.example.com, .Team.example.org",
            "JUPYTERHUB_PUBLIC_URL": "https://hub.example.net/user/ana/",
            "TENSORBOARD_PROXY_URL": "https://jupyter.example.net/proxy/%PORT%/",
        },
        host="own.example.com",
    )
    for name in ("tb.example.com:443", "a.team.example.org", "team.example.org", "hub.example.net", "own.example.com"):
        assert policy.accepts(name)
    assert policy.accepts("jupyter.example.net")
    for name in ("example.com", "x.tb.example.com", "evilteam.example.org"):
        assert not policy.accepts(name)


def test_a_malformed_address_of_a_proxy_is_ignored() -> None:
    assert not HostPolicy.from_environment({"TENSORBOARD_PROXY_URL": "http://[x"}).accepts("evil.example")


def test_routes_refuse_with_the_setting_that_allows_it_and_the_tab_is_served(move_in: MoveIn, tmp_path: Path) -> None:
    tenant = move_in(tmp_path)
    for route in ("runs", "devices", "report?id=x"):
        response = tenant.get(route, headers={"Host": "evil.example:6006"})
        assert response.status_code == 403
        assert "TB_BOTTLENECK_HOSTS=evil.example" in response.text
    assert tenant.get("static/index.js", headers={"Host": "evil.example"}).status_code == 200
    assert tenant.get("devices", headers={"Host": "localhost:6006"}).status_code == 200


def test_the_setting_allows_a_name(move_in: MoveIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TB_BOTTLENECK_HOSTS", "tb.example.com")
    assert move_in(tmp_path).get("devices", headers={"Host": "tb.example.com"}).status_code == 200


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("index.js", "text/javascript"), ("LICENSES.txt", "text/plain"), ("style.css", "text/css")],
)
def test_a_file_is_served_under_its_type(tmp_path: Path, name: str, media_type: str) -> None:
    (tmp_path / name).write_bytes(b"content")
    assert static_files.read(name, tmp_path) == (b"content", media_type)


def test_the_directory_is_the_one_that_the_build_writes() -> None:
    assert Path(tb_bottleneck.plugin.__file__).parent / "static" == static_files.DIRECTORY


@pytest.mark.parametrize("name", ["../secret.txt", "sub/secret.txt", "/etc/hosts.txt", "..\\secret.txt", ".secret.txt"])
def test_no_name_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    static = tmp_path / "static"
    (static / "sub").mkdir(parents=True)
    for place in (tmp_path / "secret.txt", static / "sub" / "secret.txt", static / ".secret.txt"):
        place.write_text("secret")
    assert static_files.read(name, static) is None


def test_a_type_that_is_not_ours_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<script>")
    assert static_files.read("page.html", tmp_path) is None


def test_without_a_build_the_entry_module_says_how_to_build(tmp_path: Path) -> None:
    file = static_files.read("index.js", tmp_path / "static")
    assert file is not None
    module = file[0].decode()
    assert "export function render()" in module
    assert "pip install ." in module
    assert "textContent" in module
    assert "innerHTML" not in module
