"""The tools about trainings: the list, briefs, whole reports, how to record, reviews, live jobs."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from tb_bottleneck.agents.answers import answer
from tb_bottleneck.agents.tool import ID, OFFSET, Arguments, Session, Tool, parts_of
from tb_bottleneck.agents.training_reports import AnalysedTraining
from tb_bottleneck.agents.workers import Tell
from tb_bottleneck.base.units import NS_PER_MS
from tb_bottleneck.live.rank_states import RankState
from tb_bottleneck.live.state import LiveJobs
from tb_bottleneck.plugin.state.run_index import id_of
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.json_form import as_dict
from tb_bottleneck.review.notes import names_of, state_of, together
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.brief import brief
from tb_bottleneck.text.table_rows import Row

MAX_FOLDERS = 10
"""Largest number of folders that one call of list_runs analyses."""

_LIST_CHARACTERS = 30_000  # a page with more characters gets no further folder; a folder has at most 64 rows
_LEFT_OUT = frozenset(("operators", "membership"))
_RUNS = RankState.RUNNING.value
_LONG = frozenset(("step_times_ns", "curve", "lifetimes", "history", "bins", "source", "witness", "definition"))


async def list_runs(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns as JSON one row for each training, from at most MAX_FOLDERS folders in the order of their names."""
    known = await asyncio.to_thread(session.logdir.recordings)
    found = str(arguments.get("find", "")).lower()
    folders = [folder for folder in known.folders if found in folder.lower()]
    begin, rows, done = int(arguments.get("offset", 0)), list[dict[str, Any]](), 0
    chosen = folders[begin : begin + MAX_FOLDERS]

    async def tell_of_all(share: float) -> None:
        await tell((done + share) / len(chosen))

    for folder in chosen:
        for training in await session.trainings.in_folder(folder, known, tell_of_all):
            states = [known.scan.reviews[each] for each in training.recordings if each in known.scan.reviews]
            rows.append(_row(training) | ({"review": state_of(together(states), "").state} if states else {}))
        done += 1
        if len(json.dumps(rows)) > _LIST_CHARACTERS:
            break
    end = begin + done
    facts: dict[str, Any] = {"folders_in_all": len(folders), "problems": known.scan.listing.problems[:5]}
    if end < len(folders):
        facts["next_offset"] = end
    return answer(facts, rows)


def _row(training: AnalysedTraining) -> dict[str, Any]:
    row = Row("", training.reports, Digest.of(training.report), training.job)
    step, verdict = row.digest.step_ns, row.verdict
    return {
        "id": id_of(training.recordings[0]),
        "name": names_of(training.recordings[0])[1],
        "evidence": row.sources,
        "health": "" if row.digest.health == "ok" else row.digest.health,
        "severity": row.severity,
        "verdict": verdict.title or verdict.regime if verdict is not None else "none",
        "share": verdict.share if verdict is not None else None,
        "action": row.action,
        "gain": round(row.gain, 2) if row.gain > 1 else None,
        "step_ms": step / NS_PER_MS if step else None,
        "note": training.note,
    }


async def show_brief(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns the short text about a training as JSON. If its ranks were judged together, the text is about the job."""
    training = await _training(session, arguments, tell)
    facts = {"id": id_of(training.recordings[0]), "brief": brief(training.job or training.report)}
    return answer(facts | {"note": training.note})


async def show_report(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns the whole report as rows in JSON. Each row has the name of its part of the report."""
    training = await _training(session, arguments, tell)
    recording = (await asyncio.to_thread(session.logdir.recordings)).named(arguments["id"])
    own = training.recordings.index(recording) if recording in training.recordings else 0
    rows = parts_of(_without_long(as_dict(training.reports[own])), _LEFT_OUT)
    if training.job is not None:
        rows = [*({**row, "part": f"job.{row['part']}"} for row in parts_of(as_dict(training.job))), *rows]
    wanted = arguments.get("part")
    if wanted:
        rows = [row for row in rows if row["part"] == wanted]
    parts = list(dict.fromkeys(row["part"] for row in rows))
    facts = {"id": arguments["id"], "parts": ", ".join(parts), "note": training.note}
    return answer(facts, rows, int(arguments.get("offset", 0)))


def _without_long(value: Any) -> Any:
    """Returns `value` (JSON data) without columns and curves, which only the tab draws."""
    if isinstance(value, Mapping):
        # In the report itself, `source` is the name of the file, a text. In a place, `source` is a list of lines of the
        # program, which is left out.
        return {
            name: _without_long(each)
            for name, each in value.items()
            if name not in _LONG or (name == "source" and isinstance(each, str))
        }
    return [_without_long(each) for each in value] if isinstance(value, list) else value


async def how_to_record(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns as JSON what a recording lacks and the code that records the missing data; without an id, a page on how
    to record."""
    if "id" not in arguments:
        return answer({"page": _page()})
    report = (await _training(session, arguments, tell)).report
    rows: list[dict[str, Any]] = [
        {"part": "health", "code": reason.code, "detail": reason.detail, "fix": reason.fix}
        for reason in report.health.reasons
    ]
    for verdict in report.regimes:
        if verdict.status == "abstains":
            rows.append({"part": "cannot_tell", "about": verdict.title, "because": verdict.because})
    rows += [{"part": "memory", "missing": report.memory.missing}] if report.memory.missing else []
    rows += [{"part": "compilation", "missing": report.compilation.missing}] if report.compilation.missing else []
    return answer({"id": arguments["id"], "health": report.health.status}, rows)


@lru_cache(maxsize=1)
def _page() -> str:
    return (files("tb_bottleneck") / "docs" / "skill" / "record.md").read_text(encoding="utf-8")


async def review(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns as JSON what the team stated about a training, and the state of each finding of the training."""
    known = await asyncio.to_thread(session.logdir.recordings)
    training = await _training(session, arguments, tell)
    stated = together([known.scan.reviews[each] for each in training.recordings if each in known.scan.reviews])
    rows = [
        {"cause": cause, "title": title, **_state(stated, cause)} for cause, title in [("", ""), *_findings(training)]
    ]
    facts = {"id": id_of(training.recordings[0])}
    return answer(facts, rows, int(arguments.get("offset", 0)))


def _findings(training: AnalysedTraining) -> list[tuple[str, str]]:
    culprits: Sequence[pb.Culprit] = training.job.culprits if training.job is not None else []
    report = training.report
    found: list[pb.Culprit | pb.Finding | pb.MemoryFinding] = [*culprits, *report.findings, *report.memory.findings]
    return list({each.cause: (each.cause, each.title) for each in found}.values())


def _state(stated: Any, cause: str) -> dict[str, Any]:
    state = as_dict(state_of(stated, cause))
    return {name: value for name, value in state.items() if name != "cause"}


async def live(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns as JSON the jobs that are training now, or that ended in the last minutes."""

    def read() -> list[dict[str, Any]]:
        states = [state for root in session.logdir.roots for state in LiveJobs(root.path).read()]
        return [_brief_ranks(state.as_json()) for state in states]

    return answer({}, await asyncio.to_thread(read), int(arguments.get("offset", 0)))


def _brief_ranks(job: dict[str, Any]) -> dict[str, Any]:
    """Modifies and returns the state of a job. Removes the history and directory of each rank, and sorts the ranks:
    first those that the verdict names, then those that do not run, then the others."""
    named, left_out = set(job["verdict"]["ranks"]), ("history", "directory")
    ranks = sorted(job["ranks"], key=lambda rank: (rank["rank"] not in named, rank["state"] == _RUNS, rank["rank"]))
    job["ranks"] = [{name: each for name, each in rank.items() if name not in left_out} for rank in ranks]
    return job


async def _training(session: Session, arguments: Arguments, tell: Tell) -> AnalysedTraining:
    known = await asyncio.to_thread(session.logdir.recordings)
    return await session.trainings.of(known.named(arguments["id"]), known, tell)


TOOLS = (
    Tool(
        "list_runs",
        f"Trainings with id, verdict, action and gain, {MAX_FOLDERS} folders per page. find: text in the folder name.",
        list_runs,
        {"find": {"type": "string"}, **OFFSET},
    ),
    Tool(
        "brief",
        "What to do first about a training: gain, cause, line, code of the fix, how to confirm it.",
        show_brief,
        ID,
        ("id",),
    ),
    Tool(
        "report",
        "The whole report as rows with a part each (verdict, account, findings, plan, regimes, memory, ...).",
        show_report,
        {**ID, "part": {"type": "string"}, **OFFSET},
        ("id",),
    ),
    Tool("how_to_record", "With id: what the recording lacks and how to record it. Without: how to record.",
         how_to_record, ID),
    Tool("review", "What the team stated about a training and its findings: open, accepted, fixed, comments.", review,
         {**ID, **OFFSET}, ("id",)),
    Tool("live", "Trainings that run now: what holds them up, slow and hung ranks, step times.", live, OFFSET),
)  # fmt: skip
