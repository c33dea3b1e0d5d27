"""JSON has no NaN: such values are refused before they become strings."""

import pytest

from tb_bottleneck.report.rendering.figures import as_json
from tb_bottleneck.schema import bottleneck_pb2 as pb


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nan_is_refused_at_any_depth(number):
    report = pb.Report(account=[pb.AccountRow(regime="input", share=number)])
    with pytest.raises(ValueError, match=r"AccountRow\.share"):
        as_json(pb.Reports(reports=[report]))


def test_a_repeated_number_or_word_is_accepted():
    assert as_json(pb.Host(number=1, ranks=[0, 1])) == '{"number":1,"ranks":[0,1]}'
