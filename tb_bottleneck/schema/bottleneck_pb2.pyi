from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reports(_message.Message):
    __slots__ = ("reports", "jobs")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[Report]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    def __init__(self, reports: _Optional[_Iterable[_Union[Report, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("run", "ranks", "verdict", "account", "stragglers", "speedup")
    RUN_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    STRAGGLERS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    run: str
    ranks: _containers.RepeatedScalarFieldContainer[int]
    verdict: Verdict
    account: _containers.RepeatedCompositeFieldContainer[AccountRow]
    stragglers: _containers.RepeatedCompositeFieldContainer[Straggler]
    speedup: Speedup
    def __init__(self, run: _Optional[str] = ..., ranks: _Optional[_Iterable[int]] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., account: _Optional[_Iterable[_Union[AccountRow, _Mapping]]] = ..., stragglers: _Optional[_Iterable[_Union[Straggler, _Mapping]]] = ..., speedup: _Optional[_Union[Speedup, _Mapping]] = ...) -> None: ...

class Straggler(_message.Message):
    __slots__ = ("rank", "behind_share")
    RANK_FIELD_NUMBER: _ClassVar[int]
    BEHIND_SHARE_FIELD_NUMBER: _ClassVar[int]
    rank: int
    behind_share: float
    def __init__(self, rank: _Optional[int] = ..., behind_share: _Optional[float] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("schema", "run", "source", "witness", "evidence_source", "rank", "world_size", "device", "health", "window", "account", "verdict", "regimes", "findings", "plan", "replay", "disagreements", "phases", "unprofiled")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_SOURCE_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REGIMES_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    REPLAY_FIELD_NUMBER: _ClassVar[int]
    DISAGREEMENTS_FIELD_NUMBER: _ClassVar[int]
    PHASES_FIELD_NUMBER: _ClassVar[int]
    UNPROFILED_FIELD_NUMBER: _ClassVar[int]
    schema: int
    run: str
    source: str
    witness: str
    evidence_source: str
    rank: int
    world_size: int
    device: Device
    health: Health
    window: Window
    account: _containers.RepeatedCompositeFieldContainer[AccountRow]
    verdict: Verdict
    regimes: _containers.RepeatedCompositeFieldContainer[RegimeVerdict]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    plan: _containers.RepeatedCompositeFieldContainer[PlanStep]
    replay: Replay
    disagreements: _containers.RepeatedCompositeFieldContainer[Disagreement]
    phases: _containers.RepeatedCompositeFieldContainer[Phase]
    unprofiled: Unprofiled
    def __init__(self, schema: _Optional[int] = ..., run: _Optional[str] = ..., source: _Optional[str] = ..., witness: _Optional[str] = ..., evidence_source: _Optional[str] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., device: _Optional[_Union[Device, _Mapping]] = ..., health: _Optional[_Union[Health, _Mapping]] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., account: _Optional[_Iterable[_Union[AccountRow, _Mapping]]] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., regimes: _Optional[_Iterable[_Union[RegimeVerdict, _Mapping]]] = ..., findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ..., plan: _Optional[_Iterable[_Union[PlanStep, _Mapping]]] = ..., replay: _Optional[_Union[Replay, _Mapping]] = ..., disagreements: _Optional[_Iterable[_Union[Disagreement, _Mapping]]] = ..., phases: _Optional[_Iterable[_Union[Phase, _Mapping]]] = ..., unprofiled: _Optional[_Union[Unprofiled, _Mapping]] = ...) -> None: ...

class Phase(_message.Message):
    __slots__ = ("begin_ns", "end_ns", "regime", "share", "severity", "title")
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    begin_ns: float
    end_ns: float
    regime: str
    share: float
    severity: str
    title: str
    def __init__(self, begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., regime: _Optional[str] = ..., share: _Optional[float] = ..., severity: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...

class Unprofiled(_message.Message):
    __slots__ = ("step_ns", "steps", "ratio", "sentence")
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    step_ns: float
    steps: int
    ratio: float
    sentence: str
    def __init__(self, step_ns: _Optional[float] = ..., steps: _Optional[int] = ..., ratio: _Optional[float] = ..., sentence: _Optional[str] = ...) -> None: ...

class Disagreement(_message.Message):
    __slots__ = ("regime", "trace", "telemetry", "sentence")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    TELEMETRY_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    regime: str
    trace: str
    telemetry: str
    sentence: str
    def __init__(self, regime: _Optional[str] = ..., trace: _Optional[str] = ..., telemetry: _Optional[str] = ..., sentence: _Optional[str] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("name", "kind", "index", "count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    index: int
    count: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., index: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Health(_message.Message):
    __slots__ = ("status", "reasons")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    status: str
    reasons: _containers.RepeatedCompositeFieldContainer[HealthReason]
    def __init__(self, status: _Optional[str] = ..., reasons: _Optional[_Iterable[_Union[HealthReason, _Mapping]]] = ...) -> None: ...

class HealthReason(_message.Message):
    __slots__ = ("code", "detail", "fix")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    code: str
    detail: str
    fix: str
    def __init__(self, code: _Optional[str] = ..., detail: _Optional[str] = ..., fix: _Optional[str] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("steps", "basis", "step_ns", "begin_ns", "end_ns", "step_times_ns")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    STEP_TIMES_NS_FIELD_NUMBER: _ClassVar[int]
    steps: int
    basis: str
    step_ns: Spread
    begin_ns: float
    end_ns: float
    step_times_ns: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, steps: _Optional[int] = ..., basis: _Optional[str] = ..., step_ns: _Optional[_Union[Spread, _Mapping]] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., step_times_ns: _Optional[_Iterable[float]] = ...) -> None: ...

class Spread(_message.Message):
    __slots__ = ("median", "p10", "p90", "mean")
    MEDIAN_FIELD_NUMBER: _ClassVar[int]
    P10_FIELD_NUMBER: _ClassVar[int]
    P90_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    median: float
    p10: float
    p90: float
    mean: float
    def __init__(self, median: _Optional[float] = ..., p10: _Optional[float] = ..., p90: _Optional[float] = ..., mean: _Optional[float] = ...) -> None: ...

class AccountRow(_message.Message):
    __slots__ = ("regime", "share", "ns_per_step", "title", "meaning")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    NS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    regime: str
    share: float
    ns_per_step: float
    title: str
    meaning: str
    def __init__(self, regime: _Optional[str] = ..., share: _Optional[float] = ..., ns_per_step: _Optional[float] = ..., title: _Optional[str] = ..., meaning: _Optional[str] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("regime", "share", "severity", "confidence", "headline", "title", "situation", "action")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SITUATION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    regime: str
    share: float
    severity: str
    confidence: str
    headline: str
    title: str
    situation: str
    action: str
    def __init__(self, regime: _Optional[str] = ..., share: _Optional[float] = ..., severity: _Optional[str] = ..., confidence: _Optional[str] = ..., headline: _Optional[str] = ..., title: _Optional[str] = ..., situation: _Optional[str] = ..., action: _Optional[str] = ...) -> None: ...

class RegimeVerdict(_message.Message):
    __slots__ = ("regime", "status", "share", "because", "title")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    regime: str
    status: str
    share: float
    because: str
    title: str
    def __init__(self, regime: _Optional[str] = ..., status: _Optional[str] = ..., share: _Optional[float] = ..., because: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("cause", "regime", "cost_share", "speedup", "evidence", "fix", "title", "where")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    COST_SHARE_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    cause: str
    regime: str
    cost_share: float
    speedup: Speedup
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    fix: Fix
    title: str
    where: _containers.RepeatedCompositeFieldContainer[Place]
    def __init__(self, cause: _Optional[str] = ..., regime: _Optional[str] = ..., cost_share: _Optional[float] = ..., speedup: _Optional[_Union[Speedup, _Mapping]] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., fix: _Optional[_Union[Fix, _Mapping]] = ..., title: _Optional[str] = ..., where: _Optional[_Iterable[_Union[Place, _Mapping]]] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("file", "line", "function", "module", "share", "block", "chain")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    function: str
    module: str
    share: float
    block: str
    chain: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., function: _Optional[str] = ..., module: _Optional[str] = ..., share: _Optional[float] = ..., block: _Optional[str] = ..., chain: _Optional[_Iterable[str]] = ...) -> None: ...

class Speedup(_message.Message):
    __slots__ = ("expected", "low", "high", "basis", "assumes", "because")
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    ASSUMES_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    expected: float
    low: float
    high: float
    basis: str
    assumes: str
    because: str
    def __init__(self, expected: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., basis: _Optional[str] = ..., assumes: _Optional[str] = ..., because: _Optional[str] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("label", "value", "unit", "text", "compared_with", "begin_ns", "end_ns")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COMPARED_WITH_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    label: str
    value: float
    unit: str
    text: str
    compared_with: str
    begin_ns: float
    end_ns: float
    def __init__(self, label: _Optional[str] = ..., value: _Optional[float] = ..., unit: _Optional[str] = ..., text: _Optional[str] = ..., compared_with: _Optional[str] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class Fix(_message.Message):
    __slots__ = ("summary", "code", "confirm", "action")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    summary: str
    code: str
    confirm: str
    action: str
    def __init__(self, summary: _Optional[str] = ..., code: _Optional[str] = ..., confirm: _Optional[str] = ..., action: _Optional[str] = ...) -> None: ...

class PlanStep(_message.Message):
    __slots__ = ("cause", "step_ns_after", "speedup_total", "title", "low", "high", "assumes")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_AFTER_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    ASSUMES_FIELD_NUMBER: _ClassVar[int]
    cause: str
    step_ns_after: float
    speedup_total: float
    title: str
    low: float
    high: float
    assumes: str
    def __init__(self, cause: _Optional[str] = ..., step_ns_after: _Optional[float] = ..., speedup_total: _Optional[float] = ..., title: _Optional[str] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., assumes: _Optional[str] = ...) -> None: ...

class Replay(_message.Message):
    __slots__ = ("error", "frozen_share", "because", "host")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FROZEN_SHARE_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    error: float
    frozen_share: float
    because: str
    host: str
    def __init__(self, error: _Optional[float] = ..., frozen_share: _Optional[float] = ..., because: _Optional[str] = ..., host: _Optional[str] = ...) -> None: ...

class RunList(_message.Message):
    __slots__ = ("state", "logdir", "runs", "problems")
    STATE_FIELD_NUMBER: _ClassVar[int]
    LOGDIR_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    state: str
    logdir: str
    runs: _containers.RepeatedCompositeFieldContainer[RunEntry]
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, state: _Optional[str] = ..., logdir: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[RunEntry, _Mapping]]] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...

class RunEntry(_message.Message):
    __slots__ = ("id", "run", "source", "size_bytes", "state", "progress", "health", "verdict", "step_ns", "reason", "step_times_ns", "witness", "evidence_source", "live", "device", "action", "gain")
    ID_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STEP_TIMES_NS_FIELD_NUMBER: _ClassVar[int]
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_SOURCE_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    id: str
    run: str
    source: str
    size_bytes: float
    state: str
    progress: float
    health: str
    verdict: Verdict
    step_ns: float
    reason: str
    step_times_ns: _containers.RepeatedScalarFieldContainer[float]
    witness: str
    evidence_source: str
    live: bool
    device: str
    action: str
    gain: Speedup
    def __init__(self, id: _Optional[str] = ..., run: _Optional[str] = ..., source: _Optional[str] = ..., size_bytes: _Optional[float] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., health: _Optional[str] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., step_ns: _Optional[float] = ..., reason: _Optional[str] = ..., step_times_ns: _Optional[_Iterable[float]] = ..., witness: _Optional[str] = ..., evidence_source: _Optional[str] = ..., live: bool = ..., device: _Optional[str] = ..., action: _Optional[str] = ..., gain: _Optional[_Union[Speedup, _Mapping]] = ...) -> None: ...

class ReportAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "report")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    report: Report
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., report: _Optional[_Union[Report, _Mapping]] = ...) -> None: ...
