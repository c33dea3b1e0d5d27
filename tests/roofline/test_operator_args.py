"""The type of a kernel's operands, if the kernel's name does not contain it."""

from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.roofline.operator_args import IMPLAUSIBLE_FROM, first_tensor_type, with_operand_type
from tb_bottleneck.trace.operands import Operands

BF16 = Precision("tensor", "bf16")


def test_operands_complete_a_name_without_type():
    silent = Precision("tensor", None)
    assert with_operand_type(silent, "c10::BFloat16") == BF16
    assert with_operand_type(silent, "c10::Half") == Precision("tensor", "fp16")
    assert with_operand_type(silent, "float") == silent  # fp32 or tf32
    assert with_operand_type(BF16, "float") == BF16
    assert with_operand_type(None, "c10::Half") is None


def test_the_first_tensor_gives_the_type():
    operands = Operands(dims=((), (2, 3), (3, 4)), types=("Scalar", "c10::Half", "float"), concrete=("1", "", ""))
    assert first_tensor_type(operands) == "c10::Half"
    assert first_tensor_type(Operands((), (), ())) == ""


def test_a_share_of_a_peak_is_implausible_from_four():
    assert IMPLAUSIBLE_FROM == 4
