"""Blocks have the operator, the module, the line and the enclosing modules of their allocation."""

from helpers.memory_recordings import RecordedAllocator

from tb_bottleneck.memory.trace_memory import trace_memory


def sites_in(allocator: RecordedAllocator) -> dict[int, tuple]:
    memory = trace_memory(allocator.trace())
    sites = memory.sites(memory.at_peak)
    return {site.bytes: site.place for site in sites}


def nested() -> RecordedAllocator:
    allocator = RecordedAllocator(0, -1)
    python = "python_function"
    allocator.span("train.py(10): step", 0, 900, python)
    allocator.span("nn.Module: Model_0", 50, 400, python)
    allocator.span("model.py(30): forward", 51, 399, python)
    allocator.span("nn.Module: Block_1", 60, 300, python)
    allocator.span("model.py(50): forward", 61, 299, python)
    allocator.span("aten::linear", 100, 200, **{"Sequence number": 7})
    allocator.span("aten::empty", 110, 120)
    allocator.alloc(115.0, 4_000)
    allocator.alloc(350.0, 2_000)
    allocator.span("autograd::engine::evaluate_function: AddmmBackward0", 500, 600, **{"Sequence number": 7})
    allocator.span("aten::mm", 510, 550)
    allocator.alloc(520.0, 1_000)
    return allocator


def test_a_place_has_its_line_its_module_and_the_modules_around_it():
    place = sites_in(nested())[4_000]
    assert (place.operator, place.module, place.path) == ("aten::linear", "Block_1", ("Model_0",))
    assert (place.file, place.line, place.function) == ("model.py", 50, "forward")


def test_the_outermost_module_has_none_around_it():
    place = sites_in(nested())[2_000]
    assert (place.operator, place.module, place.path, place.line) == ("", "Model_0", (), 30)


def test_what_a_backward_pass_allocates_has_the_module_of_its_forward_operator():
    place = sites_in(nested())[1_000]
    assert (place.operator, place.module, place.line) == ("aten::mm", "Block_1", 50)


def test_a_function_that_already_ran_has_no_line():
    allocator = nested()
    allocator.alloc(800.0, 8_000)
    place = sites_in(allocator)[8_000]
    assert (place.file, place.line, place.function) == ("train.py", 0, "step")
