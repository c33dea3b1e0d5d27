"""The samples of a step are read from shapes, and never made up."""

import json

from comparison.drawn_runs import context, judged, repeated
from helpers.draw import drawn

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.measures.batch_size import SamplesPerStep, batch_size_of

STEPS = 9
LENGTH = 1000.0  # us


def run(tmp_path, layers, **header):
    """Returns a run with steps that begin with these operators: (name, shapes)."""
    trace = drawn(repeated(STEPS, op="#.........", gpu=".#########"), **header)
    for step in range(STEPS):
        for place, (name, shapes) in enumerate(layers):
            event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 100, "tid": 100}
            at = {"ts": step * LENGTH + 200 + place * 20, "dur": 10, "args": {"Input Dims": shapes(step)}}
            trace["traceEvents"].append(event | at)
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(trace))
    return judge_run("run", [str(path)]).recording


def conv(samples):
    return ("aten::conv2d", lambda step: [[samples, 3, 224, 224], [64, 3, 7, 7]])


LOSS = ("aten::cross_entropy_loss", lambda step: [[32, 10], [32]])


def test_the_first_layer_tells(tmp_path):
    assert batch_size_of(run(tmp_path, [conv(32)])) == SamplesPerStep(
        32, "the first dimension of the first convolution's input"
    )


def test_an_embedding_has_its_samples_in_its_second_input(tmp_path):
    found = batch_size_of(run(tmp_path, [("aten::embedding", lambda step: [[30522, 512], [16, 128]])]))
    assert found == SamplesPerStep(16, "the first dimension of the first embedding's input")


def test_gradients_accumulate_over_several_losses(tmp_path):
    found = batch_size_of(run(tmp_path, [conv(8), LOSS, conv(8), LOSS]))
    assert found.samples == 16
    assert "2 passes" in found.basis


def test_several_losses_of_one_pass_are_no_passes(tmp_path):
    """Six tasks with a loss each: a rank of a recommender got six times the other rank's samples."""
    found = batch_size_of(run(tmp_path, [conv(8), LOSS, LOSS, LOSS, LOSS, LOSS, LOSS]))
    assert found == SamplesPerStep(8, "the first dimension of the first convolution's input")


def compiled(*shapes):
    return ("CompiledFunction", lambda step: [*shapes])


def test_a_compiled_model_has_the_samples_of_its_loss(tmp_path):
    """The loss has a row per token: four sequences of 256. Parameters are among the inputs, too."""
    loss = ("aten::cross_entropy_loss", lambda step: [[1024, 8192], [1024]])
    weights, tokens = [8192, 512], [4, 256]
    found = batch_size_of(run(tmp_path, [compiled(weights, tokens), loss]))
    assert found == SamplesPerStep(4, "the first dimension of the compiled model's input")
    alone = batch_size_of(run(tmp_path, [compiled(weights), loss]))
    assert alone == SamplesPerStep(1024, "the first dimension of the loss's input")
    assert isinstance(batch_size_of(run(tmp_path, [compiled(weights, tokens)])), Missing)


def test_the_run_s_own_word_comes_first(tmp_path):
    assert batch_size_of(run(tmp_path, [conv(8)], tb_bottleneck=context(batch_size=64))).samples == 64


def test_steps_that_do_not_agree_tell_nothing(tmp_path):
    found = batch_size_of(run(tmp_path, [("aten::conv2d", lambda step: [[step + 1, 3, 8, 8], [64, 3, 7, 7]])]))
    assert isinstance(found, Missing)
    assert "different shapes" in found.because


def test_without_shapes_nothing_is_told(tmp_path):
    assert isinstance(batch_size_of(judged(tmp_path, repeated(9, op="##", gpu=".#")).recording), Missing)


def test_a_vector_is_no_batch(tmp_path):
    assert isinstance(batch_size_of(run(tmp_path, [("aten::embedding", lambda step: [[100, 8], [512]])])), Missing)


def linear(*shape):
    return ("aten::linear", lambda step: [list(shape), [128, 512]])


def test_a_linear_layer_may_be_given_sequences_of_samples(tmp_path):
    """Attention turns its input around: 64 places of 32 samples; the loss has the samples in front."""
    assert batch_size_of(run(tmp_path, [linear(64, 32, 512), LOSS])).samples == 32
    assert batch_size_of(run(tmp_path, [linear(32, 64, 512), LOSS])).samples == 32


def test_without_a_loss_the_batch_dimension_is_unknown(tmp_path):
    assert isinstance(batch_size_of(run(tmp_path, [linear(64, 32, 512)])), Missing)
    assert batch_size_of(run(tmp_path, [linear(64, 512)])).samples == 64
