"""Environment differences between two runs, from trace header, context and events; nothing private."""

from comparison.drawn_runs import H200, context, judged, repeated

from tb_bottleneck.comparison.texts.value_text import MAX_VALUE_LENGTH
from tb_bottleneck.comparison.workload.environment import environment_differences, environment_of

DRAWING = repeated(9, workers="#.......", gpu="...####.")


def rows(a, b):
    return {row.key: (row.a, row.b) for row in environment_differences(a, b)}


def test_the_device_and_what_is_known_of_it(tmp_path):
    found = rows(judged(tmp_path, DRAWING), judged(tmp_path, DRAWING, device=H200))
    assert found["device"] == ("NVIDIA A100-SXM4-80GB", "NVIDIA H200")
    assert found["multiprocessors"] == ("108", "132")


def test_versions_are_spelt_as_people_spell_them(tmp_path):
    a = judged(tmp_path, DRAWING, cuda_runtime_version=12040, cuda_driver_version=12080)
    b = judged(tmp_path, DRAWING, cuda_runtime_version=13000, cuda_driver_version=12080)
    assert rows(a, b) == {"cuda_runtime_version": ("12.4", "13.0")}


def test_the_run_s_own_words_also_one_level_deep(tmp_path):
    a = judged(tmp_path, DRAWING, tb_bottleneck=context(torch="2.4", loader={"workers": 2}, threads_of_mine=3))
    b = judged(tmp_path, DRAWING, tb_bottleneck=context(torch="2.5", loader={"workers": 8}, threads_of_mine=4))
    assert rows(a, b) == {
        "torch": ("2.4", "2.5"),
        "loader_workers": ("2", "8"),
        "threads_of_mine": ("3", "4"),
    }


def test_what_is_of_one_machine_or_process_alone_is_no_difference(tmp_path):
    a = judged(tmp_path, DRAWING, tb_bottleneck=context(device_uuid="1", rank=0, model_wrappers=["DDP"]))
    b = judged(tmp_path, DRAWING, tb_bottleneck=context(device_uuid="2", rank=1, model_wrappers=["DDP", "compile"]))
    assert rows(a, b) == {"model_wrappers": ("DDP", "DDP, compile")}


def test_a_fact_that_one_run_did_not_record_is_no_difference(tmp_path):
    a = judged(tmp_path, DRAWING, tb_bottleneck=context(torch="2.4"))
    assert rows(a, judged(tmp_path, DRAWING)) == {}


def test_untrusted_text_cannot_move_a_terminal(tmp_path):
    run = judged(tmp_path, DRAWING, tb_bottleneck=context(torch="2.4\x1b[2J\n" + "x" * 999))
    assert environment_of(run)["torch"].isprintable()
    assert len(environment_of(run)["torch"]) <= MAX_VALUE_LENGTH


def test_what_is_private_at_the_top_is_not_looked_at(tmp_path):
    a = judged(tmp_path, DRAWING, host_name="alice", trace_id="1")
    b = judged(tmp_path, DRAWING, host_name="bob", trace_id="2")
    assert rows(a, b) == {}


def test_the_loader_is_seen(tmp_path):
    other = repeated(9, loader="#.......", gpu="...####.")
    assert rows(judged(tmp_path, other), judged(tmp_path, DRAWING))["loader"] == (
        "in the training process",
        "by workers",
    )
