"""Results are the same wherever recordings are analysed; a recording that kills its worker costs only itself."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest
from simulate.jobs.as_traces import write_traces
from simulate.jobs.execution import execute
from simulate.jobs.topologies import Faults, Shape, data_parallel

from tb_bottleneck.base.errors import NoCluster, NotFound
from tb_bottleneck.commands.terminal import progress_bar
from tb_bottleneck.jobs.execution import dask, local
from tb_bottleneck.jobs.execution.dask import ClusterOptions, analyse_on_dask, dask_executors
from tb_bottleneck.jobs.execution.local import analyse_in_processes
from tb_bottleneck.jobs.execution.rank_analysis import RankResult, Task, analyse
from tb_bottleneck.jobs.execution.run import analyse_all
from tb_bottleneck.jobs.report.job_report import judged_together
from tb_bottleneck.jobs.summary.encoding import MAX_BYTES, decode
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.workers.ipc import WorkerLimits


@pytest.fixture(scope="module", autouse=True)
def threads_of_dask():
    """Starts the one thread that distributed keeps for the life of the process."""
    with contextlib.suppress(ImportError):
        from distributed.utils import _offload_executor

        _offload_executor.submit(int).result()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Eight ranks, one of them unreadable and one truncated."""
    job = data_parallel(Shape(ranks=8, steps=4, seed=1), Faults(host={5: 0.5}))
    found = write_traces(job, execute(job), tmp_path_factory.mktemp("job"))
    found[2].write_text("not a trace")
    found[6].write_text(found[6].read_text()[: found[6].stat().st_size * 2 // 3])
    for file in found:
        os.utime(file, (1_700_000_000, 1_700_000_000))  # a file that was just written might still grow
    return found


def tasks_of(files, **options):
    return [Task(str(file), ".", **{"cache": False, **options}) for file in files]


def serially(tasks):
    return [analyse(task) for task in tasks]


def in_processes(tasks):
    return analyse_in_processes(tasks, WorkerLimits(processes=2), lambda done, total: None)


def on_dask(tasks):
    pytest.importorskip("distributed")
    return analyse_on_dask(tasks, ClusterOptions(workers=2), lambda done, total: None)


def test_one_bad_rank_costs_only_itself(files):
    results = serially(tasks_of(files))
    reports = [Report.FromString(result.report) for result in results]
    assert [report.health.status for report in reports][2] == "unreadable"
    assert [bool(result.summary) for result in results] == [True, True, False, True, True, True, True, True]
    _, (job,) = judged_together(["."] * 8, reports, [result.summary for result in results])
    assert list(job.missing_ranks) == [2]
    assert [(culprit.cause, list(culprit.ranks)) for culprit in job.culprits] == [("slow_rank", [5])]
    assert "job_missing" in [reason.code for reason in job.health.reasons]
    assert job.verdict.confidence == "medium"


@pytest.mark.parametrize("run", [in_processes, on_dask])
def test_bytes_are_equal_in_every_mode_and_order(files, run):
    tasks = tasks_of(files)
    expected = serially(tasks)
    assert run(tasks) == expected
    assert run(tasks[::-1]) == expected[::-1]


def test_a_summary_is_small(files):
    sizes = [len(result.summary) for result in serially(tasks_of(files)) if result.summary]
    assert max(sizes) < MAX_BYTES
    assert len(decode(serially(tasks_of(files[:1]))[0].summary).communications) > 0


def killed_by(task):
    """Stands in for `analyse`: the worker is killed at rank 3, as by the kernel if memory runs out."""
    if task.path.endswith("rank3.pt.trace.json"):
        os.kill(os.getpid(), signal.SIGKILL)
    return RankResult(Path(task.path).name.encode())


def killed_once(task):
    """Kills the first worker only; a marker file remembers it."""
    marker = Path(task.run)
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return RankResult(Path(task.path).name.encode())


def marked(task):
    """Leaves a file for each task."""
    time.sleep(0.2)
    (Path(task.run) / Path(task.path).name).touch()
    return RankResult(b"")


def hungry(task):
    """Needs more memory than the limit at rank 3, and hangs at rank 4."""
    if "rank3" in task.path:
        bytearray(2 << 30)
    if "rank4" in task.path:
        time.sleep(600)
    return RankResult(Path(task.path).name.encode())


def handler(name):
    """Returns the handler of a local worker that runs the function `name` of this module instead of `analyse`."""
    function = globals()[name]
    return lambda request, progress: local.encoded(function(Task(**json.loads(request))))


@pytest.fixture(params=["local", pytest.param("dask", marks=pytest.mark.nightly)])
def run(request, monkeypatch):
    """Runs tasks with another function than `analyse`, in one local process or on a cluster of one."""

    def in_one_process(tasks, function, progress=lambda done, total: None):
        task = "tests.jobs.execution.test_rank_analysis:handler"
        return analyse_in_processes(tasks, WorkerLimits(), progress, task, (function.__name__,))

    def in_a_cluster(tasks, function, progress=lambda done, total: None):
        pytest.importorskip("distributed")
        monkeypatch.setattr(dask, "analyse_batch", batch_of[function])
        return analyse_on_dask(tasks, ClusterOptions(workers=1), progress)

    return in_one_process if request.param == "local" else in_a_cluster


def killed_by_batch(tasks):
    return [killed_by(task) for task in tasks]


def killed_once_batch(tasks):
    return [killed_once(task) for task in tasks]


def marked_batch(tasks):
    return [marked(task) for task in tasks]


batch_of = {killed_by: killed_by_batch, killed_once: killed_once_batch, marked: marked_batch}


def test_an_interrupted_run_cancels_what_has_not_started(files, run, tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt

    tasks = [Task(str(file), str(tmp_path), cache=False) for file in files]
    with pytest.raises(KeyboardInterrupt):
        run(tasks, marked, interrupt)
    time.sleep(1)  # longer than what has begun
    assert 0 < len(list(tmp_path.iterdir())) < len(files)


def names(results):
    return [result.report for result in results]


def test_a_recording_that_kills_its_worker_is_named(files, run):
    results = run(tasks_of(files), killed_by)
    expected = [file.name.encode() for file in files]
    assert names(results)[:3] + names(results)[4:] == expected[:3] + expected[4:]
    report = Report.FromString(results[3].report)
    assert report.source == "rank3.pt.trace.json"
    assert (report.health.status, report.health.reasons[0].code) == ("unreadable", "worker_died")


def test_a_worker_that_is_killed_midway_changes_nothing(files, run, tmp_path):
    tasks = [Task(str(file), str(tmp_path / "killed"), cache=False) for file in files]
    assert names(run(tasks, killed_once)) == [file.name.encode() for file in files]


@pytest.mark.nightly
def test_memory_and_time_are_limited_for_each_recording(files):
    limits = WorkerLimits(processes=2, memory_bytes=1 << 30, seconds_per_file=5.0)
    task = "tests.jobs.execution.test_rank_analysis:handler"
    results = analyse_in_processes(tasks_of(files), limits, lambda done, total: None, task, ("hungry",))
    codes = {3: "out_of_memory", 4: "timed_out"}
    for rank, (result, file) in enumerate(zip(results, files, strict=True)):
        if rank in codes:
            (reason,) = Report.FromString(result.report).health.reasons
            assert (reason.code, bool(reason.fix)) == (codes[rank], True)
        else:
            assert result.report == file.name.encode()


def test_small_jobs_run_in_this_process(files, monkeypatch):
    monkeypatch.setattr(local, "FirstComePool", None)
    assert len(analyse_all(tasks_of(files[:2]), progress_bar())) == 2


def test_the_environment_names_a_scheduler_only_without_options():
    environment = {"DASK_SCHEDULER_ADDRESS": "tcp://a:1"}
    assert ClusterOptions.of("", "", 0, environment).scheduler == "tcp://a:1"
    assert ClusterOptions.of("", "", 2, environment).scheduler == ""
    assert ClusterOptions.of("", "", 0, {}) == ClusterOptions()


def test_a_missing_scheduler_file_is_an_error():
    pytest.importorskip("distributed")
    with pytest.raises(NotFound, match="no such file"), dask_executors(ClusterOptions(scheduler_file="/no/such")):
        pass


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("node1", "missing port"),
        ("carrier://node1:8786", "unknown address scheme"),
        ("tls://127.0.0.1:1", "distributed.comm.tls"),
    ],
)
def test_a_wrong_address_is_an_error_before_a_client_waits_for_it(address, message):
    pytest.importorskip("distributed")
    with pytest.raises(NoCluster, match=message), dask_executors(ClusterOptions(scheduler=address)):
        pass


@pytest.mark.parametrize(
    ("text", "message"),
    [("[1]", "names no address"), ("{", "cannot be used"), ('{"address": "node1"}', "missing port")],
)
def test_a_wrong_scheduler_file_is_an_error(text, message, tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "scheduler.json").write_text(text)
    options = ClusterOptions(scheduler_file=str(tmp_path / "scheduler.json"))
    with pytest.raises(NoCluster, match=message), dask_executors(options):
        pass


def test_processes_are_used_although_the_environment_names_a_scheduler(files, monkeypatch):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:1")
    assert len(analyse_all(tasks_of(files[:2]), progress_bar(), processes=1)) == 2


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(NoCluster, match="pip install"), dask_executors(ClusterOptions(workers=2)):
        pass


def test_a_second_run_reads_no_trace(files, tmp_path, monkeypatch):
    monkeypatch.setenv("TB_BOTTLENECK_CACHE", str(tmp_path))
    tasks = tasks_of(files, cache=True)
    first = serially(tasks)
    monkeypatch.setattr("tb_bottleneck.jobs.execution.rank_analysis._analysed", None)
    again = [analyse(task) for position, task in enumerate(tasks) if position != 2]  # the unreadable one is read again
    assert again == first[:2] + first[3:]


def test_what_one_version_of_the_code_stored_is_complete(files, tmp_path, monkeypatch):
    """A report without its summary, as the tab stores it, is not enough for a job."""
    monkeypatch.setenv("TB_BOTTLENECK_CACHE", str(tmp_path))
    (task,) = tasks_of(files[:1], cache=True, summarise=False)
    assert analyse(task).summary == b""
    assert analyse(Task(task.path, ".")).summary != b""


def test_json_of_the_command_line_is_the_same(files, capsys):
    from tb_bottleneck.__main__ import main

    outputs = []
    for options in (["--processes", "1"], ["--processes", "2"]):
        main(["diagnose", str(files[0].parent), "--json", "--no-cache", *options])
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    document = json.loads(outputs[0])
    assert document["jobs"][0]["culprits"][0]["ranks"] == [5]
    assert document["reports"][0]["job_headline"].startswith(
        "Job of 8 ranks: Make rank 5 as fast as the other ranks: about "
    )
