"""The generated TypeScript matches the schema and the regimes."""

import runpy
from pathlib import Path

FRONTEND = Path(__file__).parents[2] / "frontend"
HOW_TO_FIX = "generated TypeScript is out of date. Run: PYTHONPATH=. python frontend/generate_types.py"

GENERATOR = runpy.run_path(str(FRONTEND / "generate_types.py"))


def test_the_committed_types_are_the_generated_ones() -> None:
    committed = GENERATOR["TARGET"].read_text(encoding="utf-8")
    assert committed == GENERATOR["typescript"](), HOW_TO_FIX


def test_the_committed_list_of_regimes_is_the_generated_one() -> None:
    committed = GENERATOR["REGIMES_TARGET"].read_text(encoding="utf-8")
    assert committed == GENERATOR["regimes"](), HOW_TO_FIX


def test_presence_repetition_and_comments_reach_the_types() -> None:
    lines = GENERATOR["typescript"]().splitlines()
    fields = [line.partition(" //")[0] for line in lines]
    assert "  readonly rank?: number;" in fields, "an optional scalar may be absent"
    assert "  readonly health?: Health;" in fields, "a message may be absent"
    assert "  readonly schema: number;" in fields, "a scalar without presence is always printed"
    assert "  readonly account: readonly AccountRow[];" in fields
    assert "  readonly rank?: number; // absent if a distributed recording does not state it" in lines


def test_every_message_is_an_interface() -> None:
    from tb_bottleneck.schema import bottleneck_pb2

    text = GENERATOR["typescript"]()
    for name in bottleneck_pb2.DESCRIPTOR.message_types_by_name:
        assert f"export interface {name} {{" in text
