"""Replaced attributes are restored, even if other code replaced them meanwhile."""

from tb_bottleneck.monitor.guard import Patches


class Base:
    def call(self) -> str:
        return "original"


class Derived(Base):
    pass


def wrapped(original):  # type: ignore[no-untyped-def]
    return lambda *arguments: "ours " + original(*arguments)


def test_everything_is_put_back_as_it_was() -> None:
    patches, before = Patches(), dict(vars(Base))
    patches.replace(Base, "call", wrapped)
    patches.replace(Base, "call", wrapped)
    assert Base().call() == "ours ours original"
    patches.restore()
    patches.restore()
    assert dict(vars(Base)) == before


def test_an_inherited_attribute_is_inherited_again() -> None:
    patches = Patches()
    patches.replace(Derived, "call", wrapped)
    assert Derived().call() == "ours original"
    patches.restore()
    assert "call" not in vars(Derived)
    assert Derived().call() == "original"


def test_a_later_replacement_by_other_code_stays() -> None:
    patches, before = Patches(), Base.call
    try:
        patches.replace(Base, "call", wrapped)
        ours = Base.call
        Base.call = theirs = lambda self: "theirs " + ours(self)  # type: ignore[method-assign]
        patches.restore()
        assert Base.call is theirs
        assert Base().call() == "theirs ours original"
    finally:
        Base.call = before  # type: ignore[method-assign]
