"""The same work is distinguished from other work by the operators that launch it."""

import json

import pytest
from comparison.drawn_runs import judged, repeated
from helpers.draw import drawn

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.workload.similarity import SAME_WORK_FROM, Similarity, _weights, similarity


def alike(tmp_path, a, b):
    return similarity(judged(tmp_path, a).recording, judged(tmp_path, b).recording).share


def test_another_loader_does_not_make_it_other_work(tmp_path):
    a = repeated(9, loader="####....", op="....##..", launch=".....|..", gpu="......##")
    b = repeated(9, workers="#....", op=".##..", launch="..|..", gpu="...##")
    assert alike(tmp_path, a, b) == 1


def test_four_times_the_operators_are_other_work(tmp_path):
    one = repeated(9, op="##......", launch=".|......", gpu="..######")
    four = repeated(9, op="#.#.#.#.", launch="|.|.|.|.", gpu=".#.#.#.#")
    found = alike(tmp_path, one, four)
    assert found == pytest.approx(1 / 4)
    assert found < SAME_WORK_FROM


WEIGHTS = {"aten::mm": 1, "aten::addmm": 2}  # which input they are


def named(tmp_path, drawing, *names, beside=(), shapes=True):
    """Returns the drawing with each step's operators named in turn, and other rows next to them."""
    trace = drawn(drawing)
    ops = [event for event in trace["traceEvents"] if event["cat"] == "cpu_op"]
    for number, event in enumerate(ops):
        event["name"] = names[number % len(names)]
        if event["name"] in WEIGHTS:
            batch, weights = [[64, 512], [512, 2048 // (1 + number % len(names))]], WEIGHTS[event["name"]]
            event["args"]["Input Dims"] = [[2048]] * (weights - 1) + batch if shapes else []
    trace["traceEvents"] += beside
    if all(event["cat"] != "kernel" for event in trace["traceEvents"]):
        trace["deviceProperties"] = []
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pt.trace.json"
    path.write_text(json.dumps(trace))
    return judge_run("run", [str(path)]).recording


FOUR = repeated(9, op="#.#.#.#.", launch="|.|.|.|.", gpu=".#.#.#.#")
TWO = repeated(9, op="#.#.....", launch="|.|.....", gpu=".###.###")
ON_CPU = repeated(9, op="#.#.#.#.")


def row(name, category, begin, length):
    return {"ph": "X", "cat": category, "name": name, "pid": 100, "tid": 100, "ts": begin, "dur": length, "args": {}}


def test_two_networks_of_one_kind_are_not_the_same_work(tmp_path):
    """Ten of 26 convolutions are missing. All operators together are 77 % alike, because both update as often."""
    deep, shallow = (number * "#." + (26 - number) * ".." for number in (26, 16))
    update = 26 * "#."
    runs = []
    for convolutions in (deep, shallow):
        launch = convolutions.replace("#", "|") + update.replace("#", "|")
        gpu = "." + launch.replace("|", "#")[:-1]
        drawing = repeated(9, op=convolutions + update, launch=launch, gpu=gpu)
        count = convolutions.count("#")
        names = ["aten::convolution"] * count + ["aten::add_"] * update.count("#")
        runs.append(named(tmp_path, drawing, *names))
    found = similarity(*runs)
    assert (found.basis, found.same_work) == ("products", False)
    assert found.share == pytest.approx(16 / 26)


def test_a_product_in_portions_is_the_same_work(tmp_path):
    """Once 64 rows, then four times 16, with the same weights: the operations are equal."""

    def multiplied(rows, *, portions):
        drawing = repeated(9, op="#." * portions, launch="|." * portions, gpu=".#" * portions)
        trace = drawn(drawing)
        for event in trace["traceEvents"]:
            if event["cat"] == "cpu_op":
                event["name"], event["args"]["Input Dims"] = "aten::mm", [[rows, 512], [512, 4096]]
        path = tmp_path / f"{portions}.pt.trace.json"
        path.write_text(json.dumps(trace))
        return judge_run("run", [str(path)]).recording

    whole, parts = multiplied(64, portions=1), multiplied(16, portions=4)
    assert similarity(whole, parts).same_work
    assert not similarity(whole, multiplied(64, portions=3)).same_work


def test_another_way_to_write_the_optimizer_is_no_other_work(tmp_path):
    """Two products, then the optimizer: two operators of a loop on one side, and the fused one on the other."""
    steps = [row("Optimizer.step#Adam.step", "user_annotation", step * 800 + 350, 450) for step in range(9)]
    loop = named(tmp_path, FOUR, "aten::mm", "aten::addmm", "aten::add_", "aten::sqrt", beside=steps)
    fused = named(tmp_path, FOUR, "aten::mm", "aten::addmm", "aten::_fused_adam_", "aten::copy_", beside=steps)
    assert similarity(loop, fused).share == 1


def test_the_same_training_with_and_without_a_gpu(tmp_path):
    """On the device everything that launches is seen; on the CPU only what multiplies can be held against it."""
    names = ("aten::addmm", "aten::relu", "aten::mm", "aten::sum")
    on_device, on_cpu = named(tmp_path, FOUR, *names), named(tmp_path, ON_CPU, *names)
    assert similarity(on_device, on_cpu).share == 1
    assert (
        similarity(on_device, named(tmp_path, ON_CPU, "aten::sum", "aten::mm", "aten::relu", "aten::mm")).share
        < SAME_WORK_FROM
    )
    assert isinstance(similarity(on_device, named(tmp_path, ON_CPU, *names, shapes=False)), Missing)


def test_a_compiled_model_is_recognised_by_its_weights(tmp_path):
    """Its pointwise operators are one kernel of its own now; its weights are the same two, under another name."""
    eager = named(tmp_path, FOUR, "aten::addmm", "aten::relu", "aten::addmm", "aten::sum")
    compiled = named(tmp_path, FOUR, "aten::mm", "triton_poi_fused_relu_0", "aten::mm", "triton_red_fused_sum_1")
    assert similarity(eager, compiled) == Similarity(1, "weights")


def test_another_compiled_model_is_another_one(tmp_path):
    """Counted without their shapes, the products of a recommender and of a picture's diffusion agreed to 88 %."""
    eager = named(tmp_path, FOUR, "aten::addmm", "aten::relu", "aten::addmm", "aten::sum")
    compiled = named(tmp_path, FOUR, "triton_poi_fused_relu_0", "aten::mm", "triton_red_fused_sum_1", "aten::mm")
    assert similarity(eager, compiled).share < SAME_WORK_FROM


def test_what_a_graph_hides_is_not_called_other_work(tmp_path):
    eager = named(tmp_path, FOUR, "aten::addmm", "aten::relu", "aten::addmm", "aten::sum")
    graphed = named(tmp_path, TWO, "Torch-Compiled Region: 0/0")
    assert isinstance(similarity(eager, graphed), Missing)


def test_runs_without_operators_are_not_called_unlike(tmp_path):
    drawing = repeated(9, loader="##..", gpu="..##")
    assert alike(tmp_path, drawing, drawing) == 1


def test_the_same_work_in_smaller_portions_is_the_same_work(tmp_path, monkeypatch):
    """Gradients of four passes are added up on one side, and come from one pass on the other."""
    four = repeated(9, op="#.#.#.#.", launch="|.|.|.|.", gpu=".#.#.#.#")
    passes = iter((1, 4))
    monkeypatch.setattr("tb_bottleneck.comparison.workload.similarity.passes_of", lambda recording: next(passes))
    assert alike(tmp_path, repeated(9, op="##......", launch=".|......", gpu="..######"), four) == 1


LOOP = repeated(9, op="#.#.#.#.#.#.#.#.", launch="|.|.|.|.|.|.|.|.", gpu=".#.#.#.#.#.#.#.#")
BATCHED = repeated(9, op="#.#.#...........", launch="|.|.|...........", gpu=".###.######.####")
LOOP_NAMES = ("aten::addmm", "aten::mm", *["aten::nonzero", "aten::copy_"] * 3)


def test_a_loop_turned_into_one_call_is_the_same_work(tmp_path):
    """Two products; then six operators of a loop on one side, and one on the other: 3 of 8 operators are common."""
    loop = named(tmp_path, LOOP, *LOOP_NAMES)
    batched = named(tmp_path, BATCHED, *LOOP_NAMES[:3])
    assert similarity(loop, batched) == Similarity(1, "weights")


def test_twice_the_layers_are_other_work(tmp_path):
    """All weights of the smaller model have the shapes of the larger one, but nothing hides the missing layers."""
    names = ["aten::addmm", "aten::relu"]
    twice = named(tmp_path, LOOP, *names)
    once = named(tmp_path, BATCHED.replace("#.#.#.", "#.#..."), *names)
    assert not similarity(twice, once).same_work


def test_products_that_compilation_hides_do_not_count(tmp_path):
    """Compiled code replaced two of four products by kernels of its own; the visible ones are all among A's."""
    products = ("aten::addmm", "aten::mm", "aten::addmm", "aten::mm")
    eager = named(tmp_path, FOUR, *products)
    compiled = named(tmp_path, FOUR, *products[:2], "triton_tem_fused_mm_0", "triton_tem_fused_mm_1")
    assert similarity(eager, compiled) == Similarity(1, "weights")


def test_a_small_model_is_not_part_of_a_large_compiled_one(tmp_path):
    """Both weights of the small model occur in the large one, but nothing hides what the small one lacks."""
    small = named(tmp_path, TWO, "aten::addmm", "aten::mm")
    names = ("aten::addmm", "aten::mm", "aten::addmm", "aten::mm") * 2
    large = named(tmp_path, LOOP, *names, beside=[row("triton_poi_fused_0", "cpu_op", 10, 20)])
    found = similarity(small, large)
    assert isinstance(found, Missing) or not found.same_work


def test_a_loop_without_shapes_is_not_called_other_work_if_its_products_agree(tmp_path):
    products = ("aten::addmm", "aten::mm", *["aten::mm"] * 10)
    short = repeated(9, op="#." * 12 + "." * 24, launch="|." * 12 + "." * 24, gpu=".#" * 12 + "#" * 24)
    long = repeated(9, op="#." * 24, launch="|." * 24, gpu=".#" * 24)
    loop = named(tmp_path, long, *products, *["aten::nonzero"] * 12, shapes=False)
    batched = named(tmp_path, short, *products, shapes=False)
    assert isinstance(similarity(loop, batched), Missing)


def test_another_batch_size_does_not_change_the_weights(tmp_path):
    """The gradient of a weight is a product of two inputs that both depend on the batch."""
    names = ("aten::addmm", "aten::mm", "aten::relu", "aten::mm")
    trained = named(tmp_path, FOUR, *names)
    pass_row = "autograd::engine::evaluate_function: AddmmBackward0"
    backward = [row(pass_row, "cpu_op", step * 800 + 550, 240) for step in range(9)]
    with_backward = named(tmp_path, FOUR, *names, beside=backward)
    assert "[512, 512]" in _weights(trained)
    assert _weights(with_backward).keys() == _weights(trained).keys() - {"[512, 512]"}
