"""The cause that a rule names for given measures, and the evidence lines of its texts: the rule's own measures only."""

import ast
import importlib
import inspect
import re

import pytest

from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.bottlenecks.judge import CRITICAL, RULES, conclusion_of
from tb_bottleneck.bottlenecks.rule_types import Verdict
from tb_bottleneck.bottlenecks.texts import cause_titles, regime_advice


class GivenMeasures:
    """Measures with given values: one regime's share, and values by the measure's key; all others are missing."""

    steps = 6

    def __init__(self, regime, share, on_device=True, **values):
        self.account, self.on_device = self, on_device
        self._regime, self._share, self._values = regime, share, values

    def share(self, regime):
        return self._share if regime == self._regime else 0.0

    def __call__(self, measure):
        value = self._values.get(measure.__name__)
        if value is None:
            return Missing("it was not recorded")
        return text_measure(value) if isinstance(value, str) else Measure(float(value), "count")

    def value(self, measure, otherwise):
        return self._values.get(measure.__name__, otherwise)


ONE, SEVERAL = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
GB = 1e9

# regime, measures, named causes in order
NAMED = [
    ("input", {"loader_iterator": ONE}, ["loader_in_main_process"]),
    ("input", {"loader_iterator": ONE, "cores_available": 2}, ["loader_in_main_process"]),
    ("input", {"loader_iterator": ONE, "cores_available": 1}, ["too_few_cores"]),
    ("input", {"loader_iterator": ONE, "cores_available": 1, "batch_waits": 0.6}, ["loader_in_main_process"]),
    ("input", {"loader_iterator": ONE, "batches_per_iterator": 1, "iterator_share": 0.7}, ["iterator_per_batch"]),
    ("input", {"loader_iterator": ONE, "batches_per_iterator": 9, "iterator_share": 0.7}, ["loader_in_main_process"]),
    ("input", {"loader_iterator": SEVERAL, "sampler_share": 0.6, "loader_reads": 0.6}, ["slow_sampler"]),
    ("input", {"loader_iterator": ONE, "time_per_sample": 8e3, "conversion_share": 0.6}, ["samples_one_by_one"]),
    ("input", {"loader_iterator": ONE, "time_per_sample": 1e5, "conversion_share": 0.6}, ["tensors_from_lists"]),
    ("input", {"loader_iterator": ONE, "sampler_share": 0.4, "conversion_share": 0.4}, ["loader_in_main_process"]),
    ("input", {"loader_iterator": SEVERAL, "handover_share": 0.6, "workers_used": 4}, ["tensor_handover"]),
    ("input", {"loader_iterator": SEVERAL, "handover_share": 0.4}, ["too_few_workers"]),
    ("input", {"loader_iterator": SEVERAL}, ["too_few_workers"]),
    ("input", {"loader_iterator": SEVERAL, "fetches_recorded": 6}, ["too_few_workers"]),
    ("input", {"loader_iterator": SEVERAL, "fetches_recorded": 5}, ["few_fetches"]),
    ("input", {"loader_iterator": SEVERAL, "fetches_recorded": 1, "first_batch_wait": 5e9}, ["first_batch"]),
    ("input", {"loader_iterator": SEVERAL, "fetches_recorded": 9, "first_batch_wait": 5e9}, ["too_few_workers"]),
    ("input", {"loader_iterator": SEVERAL, "workers_used": 4, "cores_available": 4}, ["cores_limit_workers"]),
    (
        "input",
        {"loader_iterator": SEVERAL, "workers_used": 4, "cores_available": 4, "batch_waits": 0.6},
        ["too_few_workers"],
    ),
    ("input", {"loader_iterator": SEVERAL, "workers_used": 3, "cores_available": 4}, ["too_few_workers"]),
    ("input", {}, ["batches_in_the_loop"]),
    ("input", {"loader_fetch": 5e6}, ["slow_loader"]),
    ("input", {"loader_iterator": SEVERAL, "batch_operator_share": 0.8}, ["batches_in_the_loop"]),
    ("input", {"batch_operator_share": 0.8, "created_share": 0.9}, ["created_on_host"]),
    ("input", {"batch_operator_share": 0.8, "created_share": 0.5}, ["batches_in_the_loop"]),
    ("input", {"batch_operator_share": 0.2, "created_share": 0.9}, ["batches_in_the_loop"]),
    ("input", {"loader_iterator": SEVERAL, "batch_operator_share": 0.2}, ["too_few_workers"]),
    ("input", {"loader_iterator": ONE, "loader_reads": 0.7}, ["slow_storage"]),
    ("input", {"loader_iterator": ONE, "loader_reads": 0.3, "uneven_fetches": 0.2}, ["loader_in_main_process"]),
    ("input", {"loader_iterator": SEVERAL, "uneven_fetches": 0.6}, ["slow_storage"]),
    ("transfer", {}, ["exposed_copies"]),
    ("transfer", {"pageable_copies": 5e6}, ["pageable_copies"]),
    ("transfer", {"pageable_copies": 0}, ["blocking_copies"]),
    ("transfer", {"pageable_copies": 256, "host_copies": 80e6}, ["blocking_copies"]),
    ("transfer", {"pageable_copies": 40e6, "host_copies": 80e6}, ["pageable_copies"]),
    ("transfer", {"pageable_copies": 4e6, "host_copies": 80e6, "copy_back_share": 0.9}, ["large_results"]),
    ("transfer", {"pageable_copies": 0, "pinned_bandwidth": 24 * GB, "link_bandwidth": 25 * GB}, ["blocking_copies"]),
    (
        "transfer",
        {"pageable_copies": 0, "pinned_bandwidth": 12 * GB, "link_bandwidth": 25 * GB},
        ["degraded_link", "blocking_copies"],
    ),
    ("sync", {}, ["blocking_waits"]),
    ("sync", {"read_waits": 1.0, "costly_reads": 1.0}, ["scalar_reads"]),
    ("sync", {"read_waits": 1.0, "costly_reads": 6.0}, ["metric_reads"]),
    ("sync", {"upload_waits": 0.7, "read_waits": 0.3, "costly_reads": 1}, ["blocking_uploads", "scalar_reads"]),
    ("sync", {"shape_waits": 0.9, "read_waits": 0.1}, ["data_dependent_shapes"]),
    ("sync", {"explicit_waits": 1.0}, ["explicit_waits"]),
    (
        "sync",
        {"shape_waits": 0.8, "minor_kind_waits": 0.7, "costly_waits": 9},
        ["waits_combined", "data_dependent_shapes"],
    ),
    ("sync", {"shape_waits": 0.9, "minor_kind_waits": 0.7, "costly_waits": 9}, ["data_dependent_shapes"]),
    ("sync", {"shape_waits": 0.8, "minor_kind_waits": 0.7, "costly_waits": 2}, ["data_dependent_shapes"]),
    ("sync", {"shape_waits": 0.8, "minor_kind_waits": 0.1, "costly_waits": 9}, ["data_dependent_shapes"]),
    ("sync", {"minor_kind_waits": 1.0}, ["blocking_waits"]),
    ("launch", {}, ["small_kernels"]),
    ("launch", {"compiled_kernels": 0.7, "graph_launches": 0.0}, ["no_graph"]),
    ("launch", {"compiled_kernels": 0.7, "graph_launches": 1.0}, ["small_kernels"]),
    ("launch", {"idle_in_unbatched_calls": 0.4}, ["small_kernels", "unbatched_calls"]),
    ("launch", {"idle_in_unbatched_calls": 0.05}, ["small_kernels"]),
    ("launch", {"idle_in_micro_batches": 0.15}, ["small_batch", "small_kernels"]),
    ("launch", {"idle_in_micro_batches": 0.9}, ["small_batch"]),
    ("launch", {"idle_in_micro_batches": 0.05}, ["small_kernels"]),
    ("launch", {"blocking_share": 0.95}, ["blocking_launches"]),
    ("launch", {"blocking_share": 0.3}, ["small_kernels"]),
    ("launch", {"anomaly_share": 0.4}, ["anomaly_detection", "small_kernels"]),
    ("launch", {"anomaly_share": 0.01}, ["small_kernels"]),
    ("launch", {"idle_in_cells": 0.9, "cells_per_step": 150.0}, ["recurrent_cells"]),
    ("launch", {"idle_in_cells": 0.9, "cells_per_step": 2.0}, ["small_kernels"]),
    ("launch", {"idle_in_scattered_updates": 0.1}, ["scattered_updates", "small_kernels"]),
    ("launch", {"idle_in_scattered_updates": 0.02}, ["small_kernels"]),
    ("launch", {"idle_in_checks": 0.1, "checks_per_step": 12.0}, ["small_kernels", "device_checks"]),
    ("launch", {"idle_in_checks": 0.1, "checks_per_step": 1.0}, ["small_kernels"]),
    ("launch", {"idle_in_checks": 0.02, "checks_per_step": 12.0}, ["small_kernels"]),
    ("launch", {"data_parallel_devices": 4.0}, ["data_parallel"]),
    ("launch", {"data_parallel_devices": 4.0, "idle_during_other_devices": 0.5}, ["data_parallel"]),
    ("launch", {"idle_during_other_devices": 0.5}, ["devices_take_turns"]),
    ("launch", {"idle_during_other_devices": 0.1}, ["small_kernels"]),
    ("sync", {"read_waits": 1.0, "costly_reads": 1.0, "idle_during_other_devices": 0.5}, ["devices_take_turns"]),
    ("launch", {"optimizer_launches": 400.0, "optimizer_share": 0.5}, ["small_kernels", "optimizer_for_loop"]),
    ("launch", {"optimizer_launches": 400.0, "optimizer_share": 0.95}, ["optimizer_for_loop"]),
    ("host", {}, ["host_python"]),
    ("host", {"python_tracer": "on"}, ["python_tracer"]),
    ("host", {"host_operator_share": 0.55}, ["host_operators"]),
    ("host", {"host_operator_share": 0.2}, ["host_python", "host_operators"]),
    ("host", {"host_operator_share": 0.02}, ["host_python"]),
    ("allocator", {"cache_frees": 8.0, "driver_allocations": 8.0}, ["empty_cache"]),
    ("allocator", {"frees_under_pressure": 8.0, "driver_allocations": 8.0}, ["memory_pressure"]),
    ("allocator", {"pinned_allocations": 2.0}, ["pinned_allocations"]),
    ("allocator", {"driver_allocations": 3.0}, ["growing_memory"]),
    ("allocator", {"driver_allocations": 160.0, "frees_under_pressure": 2.0, "cache_frees": 1.0}, ["growing_memory"]),
    ("allocator", {}, ["growing_memory"]),
    ("interruption", {"checkpoints": 5e6, "log_writes": 1e6}, ["checkpointing"]),
    ("interruption", {"evaluations": 5e6}, ["evaluation"]),
    ("interruption", {"garbage_collections": 35e6, "interruption_time": 3.9e9}, ["other_interruption"]),
    ("interruption", {"log_writes": 5e6}, ["logging"]),
    ("interruption", {"garbage_collections": 5e6}, ["garbage_collection"]),
    ("interruption", {"first_runs": 5e6}, ["first_runs"]),
    ("interruption", {"first_runs": 5e6, "first_runs_once": 0.6}, ["start_up"]),
    ("interruption", {}, ["other_interruption"]),
    ("communication", {"socket_channels": 8, "active_ports": 1}, ["nccl_sockets"]),
    ("communication", {"socket_channels": 8}, ["exposed_collectives"]),
    ("communication", {"socket_channels": 0, "active_ports": 1}, ["exposed_collectives"]),
    ("communication", {}, ["exposed_collectives"]),
    ("communication", {"shard_collectives": 0.9}, ["exposed_shards"]),
    ("communication", {"shard_collectives": 0.4, "all_to_all_collectives": 0.6}, ["exposed_all_to_all"]),
    ("communication", {"shard_collectives": 0.4, "all_to_all_collectives": 0.4}, ["exposed_collectives"]),
    ("communication", {"all_to_all_collectives": 0.9, "point_to_point_collectives": 0.9}, ["pipeline_bubble"]),
    (
        "communication",
        {"point_to_point_collectives": 0.9, "bus_bandwidth": 2 * GB, "slot_bandwidth": 25 * GB},
        ["pipeline_bubble"],
    ),
    ("communication", {"data_parallel_devices": 2.0}, ["data_parallel"]),
    ("communication", {"backend": "gloo"}, ["slow_backend"]),
    ("communication", {"backend": "nccl"}, ["exposed_collectives"]),
    ("communication", {"bus_bandwidth": 2 * GB, "slot_bandwidth": 25 * GB}, ["slow_interconnect"]),
    ("communication", {"bus_bandwidth": 20 * GB, "slot_bandwidth": 25 * GB}, ["exposed_collectives"]),
    ("communication", {"collectives_after_backward": 0.9, "hidden_collectives": 0.05}, ["no_overlap"]),
    ("communication", {"collectives_after_backward": 0.9, "hidden_collectives": 0.6}, ["exposed_collectives"]),
    ("communication", {"collectives_after_backward": 0.9, "hidden_collectives": 0.05, "buckets": 1.0}, ["one_bucket"]),
    ("communication", {"collectives_after_backward": 0.9, "hidden_collectives": 0.05, "buckets": 0.25}, ["one_bucket"]),
    ("communication", {"collectives_after_backward": 0.9, "hidden_collectives": 0.05, "buckets": 2.0}, ["no_overlap"]),
    ("communication", {"message_size": 2e4, "collectives": 60.0}, ["small_messages"]),
    ("communication", {"exchanged_portions": 16.0}, ["synced_portions"]),
    ("communication", {"exchanged_portions": 1.0}, ["exposed_collectives"]),
    (
        "communication",
        {"exchanged_portions": 4.0, "message_size": 2e4, "collectives": 60.0},
        ["synced_portions", "small_messages"],
    ),
    ("communication", {"message_size": 2e4, "collectives": 2.0}, ["exposed_collectives"]),
    ("compute", {"full_precision_products": 0.6, "tf32_available": 1.0}, ["fp32_matmul"]),
    ("compute", {"full_precision_products": 0.6, "tf32_available": 0.0}, ["fp32_without_tf32"]),
    ("compute", {"double_precision_share": 0.6}, ["double_precision"]),
    ("compute", {"double_precision_share": 0.05}, []),
    ("compute", {"clock_below_highest": 0.3}, ["low_clock"]),
    ("compute", {"clock_below_highest": 0.05}, []),
    ("compute", {"misaligned_products": 0.4}, ["misaligned_shapes"]),
    ("compute", {"full_precision_products": 0.05, "misaligned_products": 0.05}, []),
    ("compute", {"unused_cores": 0.9}, []),
    ("memory", {"pointwise_share": 0.5}, ["unfused_pointwise"]),
    ("memory", {"pointwise_share": 0.1}, []),
    ("memory", {"pointwise_share": 0.3, "optimizer_pointwise": 0.25}, ["unfused_pointwise", "optimizer_passes"]),
    ("memory", {"unfused_attention_share": 0.3}, ["unfused_attention"]),
    ("memory", {"unfused_attention_share": 0.05}, []),
    ("memory", {"wide_activations": 0.5}, ["fp32_activations"]),
    ("memory", {"wide_activations": 0.5, "full_precision_products": 0.4}, []),
    ("memory", {"wide_activations": 0.1}, []),
    ("memory", {"layout_conversions": 0.09, "norms_in_nchw": 0.4}, ["memory_format"]),
    ("memory", {"layout_conversions": 0.12}, ["memory_format"]),
    ("memory", {"layout_conversions": 0.02, "norms_in_nchw": 0.1}, []),
    ("memory", {"dense_update_share": 0.5}, ["dense_gradients"]),
    ("memory", {"dense_update_share": 0.05}, []),
    ("memory", {"dense_update_share": 0.5, "optimizer_pointwise": 0.45}, ["dense_gradients"]),
    ("memory", {"norms_in_nchw": 0.5}, []),  # in 32 bits, without matrix units, NCHW costs nothing
    ("underfilled", {}, ["small_batch"]),
    ("unexplained", {}, []),
    ("unexplained", {"unexplained_excess": 0.4}, ["uneven_steps"]),
    ("unexplained", {"unexplained_excess": 0.05}, []),
]
ON_THE_CPU = [
    ("launch", {"cells_per_step": 150.0, "cells_share": 0.4}, ["recurrent_cells"]),
    ("launch", {"cells_per_step": 2.0, "cells_share": 0.4}, ["small_operators"]),
    ("launch", {}, ["small_operators"]),
    ("launch", {"optimizer_launches": 400.0, "optimizer_share": 0.5}, ["optimizer_for_loop", "small_operators"]),
    ("launch", {"optimizer_launches": 400.0, "optimizer_share": 0.9}, ["optimizer_for_loop"]),
    ("launch", {"compiled_regions": 2.0}, ["operators_outside_graphs"]),
    ("memory", {"pointwise_share": 0.5}, ["unfused_pointwise"]),
    ("memory", {"pointwise_share": 0.5, "compiled_regions": 2.0}, ["pointwise_outside_graphs"]),
    ("compute", {"threads_per_core": 2.0}, ["oversubscribed_threads"]),
    ("compute", {"threads_per_core": 1.0}, []),
    ("compute", {"unused_cores": 0.5}, ["too_few_threads"]),
    ("compute", {"unused_cores": 0.4}, []),
    ("compute", {"unused_cores": 0.5, "double_precision_share": 0.6}, ["too_few_threads", "double_precision"]),
    ("compute", {"double_precision_share": 0.6}, ["double_precision"]),
    ("communication", {"backend": "gloo"}, ["exposed_collectives"]),
]
ALL = [(*row, True) for row in NAMED] + [(*row, False) for row in ON_THE_CPU]


def judged(regime, values, on_device, share=0.6):
    rule = next(rule for rule in RULES if rule.regime == regime)
    return rule.judge(GivenMeasures(regime, share, on_device, **values))


@pytest.mark.parametrize(("regime", "values", "named", "on_device"), ALL)
def test_the_measures_name_the_cause(regime, values, named, on_device):
    judgement = judged(regime, values, on_device)
    assert judgement.status == "fires"
    assert [cause.name for cause in judgement.causes] == named


@pytest.mark.parametrize("most", [0.7, None])
def test_collectives_cost_at_most_their_calls_and_what_operators_lose_to_them(most):
    values = {"message_size": 2e4, "collectives": 60.0, "hidden_collectives": 0.5}
    values |= {} if most is None else {"exchange_limit": most}
    [cause] = judged("communication", values, on_device=most is None).causes
    assert (cause.name, cause.bounded, cause.most) == ("small_messages", True, most)


@pytest.mark.parametrize("on_device", [True, False])
def test_the_share_of_first_runs_is_no_bound_on_the_cpu(on_device):
    [cause] = judged("interruption", {"first_runs": 5e6}, on_device).causes
    assert (cause.name, cause.bounded) == ("first_runs", on_device)


@pytest.mark.parametrize(("share", "fixes"), [(0.4, {"unfused_pointwise"}), (0.1, set())])
def test_the_pointwise_operators_of_cells_belong_to_them(share, fixes):
    values = {"cells_per_step": 150.0, "cells_share": share}
    [cause] = judged("launch", values, on_device=False).causes
    assert cause.also_fixes == fixes


@pytest.mark.parametrize("layers", [0.0, 1.0])
def test_compiling_is_certain_to_help_only_models(layers):
    [cause] = judged("launch", {"models": layers}, on_device=False).causes
    assert (cause.name, cause.certain) == ("small_operators", layers > 0)


@pytest.mark.parametrize(("work", "cost"), [(0.0, 0.24), (0.1, 0.34)])
def test_a_looping_optimizer_costs_its_share_of_the_overhead_and_on_the_cpu_its_work(work, cost):
    values = {"optimizer_launches": 400.0, "optimizer_share": 0.4, "optimizer_work": work}
    costs = {cause.name: cause.cost_share for cause in judged("launch", values, on_device=False).causes}
    assert costs == pytest.approx({"optimizer_for_loop": cost, "small_operators": 0.36})


@pytest.mark.parametrize(("regime", "values", "named", "on_device"), ALL)
def test_a_cause_with_much_at_stake_makes_the_verdict_more_severe_than_none(regime, values, named, on_device):
    """Nothing is recoverable of a start-up, which is over, and of steps whose length nothing explains."""
    judgement = judged(regime, values, on_device)
    at_stake = (cause.cost_share for cause in judgement.causes if cause.recurs and cause.name != "uneven_steps")
    if max(at_stake, default=0.0) >= CRITICAL:
        assert conclusion_of((Verdict(Regime(regime), judgement),)).severity != "none"


@pytest.mark.parametrize(("regime", "values", "named", "on_device"), ALL)
def test_evidence_contains_only_measures_of_the_rule(regime, values, named, on_device):
    for cause in judged(regime, values, on_device).causes:
        shown = {line.measure for line in regime_advice(regime).causes[cause.name].evidence}
        assert shown == {measure.__name__ for measure in cause.evidence}


@pytest.mark.parametrize("regime", REGIMES)
def test_every_cause_with_texts_is_named_by_some_measures(regime):
    reached = {name for other, _, named, _ in ALL if other == regime for name in named}
    assert reached == set(regime_advice(regime).causes)


# Strings in the rules that look like the name of a cause.
OTHER_STRINGS = {"gloo", "mpi"}


@pytest.mark.parametrize("regime", Regime)
def test_every_cause_in_the_code_has_texts(regime):
    tree = ast.parse(inspect.getsource(importlib.import_module(f"tb_bottleneck.bottlenecks.{regime}.rule")))
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text for text in strings if re.fullmatch("[a-z][a-z0-9_]*", text)} - OTHER_STRINGS
    assert names <= set(cause_titles()), f"bottlenecks/{regime}/texts.toml lacks a cause"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.regime)
def test_a_regime_with_almost_no_share_names_no_cause(rule):
    assert not rule.judge(GivenMeasures(rule.regime, 0.001)).causes


@pytest.mark.parametrize(
    ("values", "on_device", "share", "named"),
    [
        ({}, False, 0.19, []),
        ({}, False, 0.21, ["small_operators"]),
        ({}, True, 0.19, ["small_kernels"]),
        ({"compiled_regions": 2.0}, False, 0.19, ["operators_outside_graphs"]),
        ({"optimizer_launches": 400.0, "optimizer_share": 0.95}, False, 0.19, ["optimizer_for_loop"]),
    ],
)
def test_operators_of_usual_layers_are_no_cause_on_the_cpu(values, on_device, share, named):
    """Compiling seven such trainings made each of them slower."""
    judgement = judged("launch", values, on_device, share)
    assert [cause.name for cause in judgement.causes] == named
    assert judgement.status == ("fires" if named else "clear")
    assert (judgement.recoverable > 0) == bool(named)


@pytest.mark.parametrize(("overhead", "status"), [(0.1, "fires"), (0.4, "clear")])
def test_launches_are_clear_if_little_remains_without_the_profiler(overhead, status):
    """Of a share of 0.45, 0.39 remains with an overhead of 0.1, and 0.08 with one of 0.4."""
    assert judged("launch", {"profiler_overhead": overhead}, True, share=0.45).status == status
