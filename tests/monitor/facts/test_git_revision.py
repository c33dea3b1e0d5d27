"""The commit that is checked out is found in the files of a repository, however git stores it."""

import pytest

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
