"""Tests facts about the training process, and the commit that is found in the files of a repository.

A fact that is unavailable is left out, and collecting facts never disturbs the training.
"""

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tb_bottleneck.monitor.facts import process
from tb_bottleneck.monitor.facts.process import revision_of

A, B = "a" * 40, "b" * 64


@pytest.fixture
def repository(tmp_path):
    """A repository with a branch, and a training script in a folder of it."""
    (tmp_path / "train" / "deep").mkdir(parents=True)
    git = tmp_path / ".git"
    (git / "refs/heads/topic").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/topic/one\n")
    (git / "refs/heads/topic/one").write_text(f"{A}\n")
    return tmp_path


def test_the_branch_that_is_checked_out_names_the_commit(repository):
    assert revision_of(repository / "train/deep") == A


def test_a_branch_may_be_packed(repository):
    (repository / ".git/refs/heads/topic/one").unlink()
    (repository / ".git/packed-refs").write_text(
        f"# pack-refs\n{B} refs/heads/topic/one2\n{A} refs/heads/topic/one\n^{B}\n"
    )
    assert revision_of(repository) == A


def test_a_commit_may_be_checked_out_without_a_branch(repository):
    (repository / ".git/HEAD").write_text(B)
    assert revision_of(repository) == B


def test_a_work_tree_has_its_head_elsewhere_and_shares_the_branches(repository, tmp_path):
    own = repository / ".git/worktrees/other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/topic/one\n")
    (own / "commondir").write_text("../..\n")
    tree = tmp_path / "elsewhere"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {own}\n")
    assert revision_of(tree) == A


@pytest.mark.parametrize("head", ["ref: ../../etc/passwd", "ref: refs/../../secret", "", "a person", A[:10]])
def test_what_is_no_commit_is_not_recorded(repository, head):
    (repository / "secret").write_text(A)
    (repository / ".git/HEAD").write_text(head)
    assert revision_of(repository) is None


def test_there_may_be_no_repository(tmp_path):
    (tmp_path / "a").mkdir()
    assert revision_of(tmp_path / "a") is None


def fake_torch(**changes: object) -> SimpleNamespace:
    off = SimpleNamespace(is_initialized=lambda: False, is_available=lambda: False)
    parts = {
        "__version__": "9.9.0", "get_num_threads": lambda: 4, "get_num_interop_threads": lambda: 2,
        "version": SimpleNamespace(hip=None), "cuda": off, "xpu": off, "backends": SimpleNamespace(mps=off),
    }  # fmt: skip
    return SimpleNamespace(**{**parts, **changes})


def on_gpu() -> SimpleNamespace:
    return SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 1,
        memory_reserved=lambda index: 0,
        current_device=lambda: 0,
        get_device_name=lambda index=None: "Fast GPU",
    )


@pytest.mark.parametrize(
    ("changes", "kind", "name"),
    [
        ({"cuda": on_gpu()}, "cuda", "Fast GPU"),
        ({"cuda": on_gpu(), "version": SimpleNamespace(hip="6.4")}, "rocm", "Fast GPU"),
        ({"xpu": on_gpu()}, "xpu", "Fast GPU"),
        ({"backends": SimpleNamespace(mps=SimpleNamespace(is_available=lambda: True))}, None, None),
    ],
)
def test_the_device_is_the_one_in_use(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], kind: str | None, name: str | None
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch(**changes))
    facts = process.collect()
    assert (facts.get("device_kind"), facts.get("device_name")) == (kind, name)


def test_the_operating_system_and_the_library_of_products_are_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(show=lambda: "PyTorch built with:\n  - Build settings: BLAS_INFO=open, BUILD_TYPE=Release")
    monkeypatch.setitem(sys.modules, "torch", fake_torch(__config__=config))
    monkeypatch.setattr("platform.system", lambda: "Windows")
    facts = process.collect()
    assert (facts["os"], facts["torch_blas"]) == ("Windows", "open")


def test_a_fact_that_raises_is_left_out_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise RuntimeError("driver shut down")

    monkeypatch.setitem(sys.modules, "torch", fake_torch(get_num_threads=broken, cuda=None))
    facts = process.collect()
    assert facts["torch"] == "9.9.0"
    assert facts["torch_interop_threads"] == 2
    assert not {"torch_threads", "device_kind", "device_name"} & set(facts)


@pytest.mark.parametrize(
    ("text", "count"), [("8", 8), ("4,2", 4), (" 3 ", 3), ("", None), ("all", None), ("²", None), ("-1", None)]
)
def test_thread_counts_in_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, count: int | None) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert process.collect().get("omp_num_threads") == count


def test_nothing_personal_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "HOSTNAME", "HOME", "SLURM_JOB_NAME", "OMP_NUM_THREADS", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "s3cret")
    assert "s3cret" not in process.as_metadata()


def test_the_program_is_known_by_hashes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/person/train.py", "--token", "s3cret"])
    facts = process.collect()
    assert facts["program"] == process.program_hash("train.py", ["--token", "s3cret"])
    assert not any(word in json.dumps(facts["program"]) for word in ("train", "s3cret", "person"))
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert "program" not in process.collect()


def test_metadata_is_json_with_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    metadata = json.loads(process.as_metadata())
    assert metadata["schema"] == 1
    assert metadata["context"]["torch"] == "9.9.0"
    assert metadata["context"]["torch_threads"] == 4
    assert metadata["context"]["device_kind"] == "cpu"
    assert metadata["context"]["local_world_size"] == 8
    assert 0 < metadata["context"]["cores"] <= metadata["context"]["machine_cores"] < math.inf


def test_collecting_does_not_import_torch() -> None:
    code = (
        "import sys; from tb_bottleneck.monitor.facts.process import collect; facts = collect();"
        "assert 'torch' not in sys.modules; assert 'cores' in facts and 'torch_threads' not in facts, facts;"
        "assert 'device_kind' not in facts"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
