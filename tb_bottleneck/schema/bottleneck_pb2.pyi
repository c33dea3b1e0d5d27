from tb_bottleneck.schema import review_pb2 as _review_pb2
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
    __slots__ = ("run", "ranks", "verdict", "account", "stragglers", "speedup", "world_size", "missing_ranks", "groups", "culprits", "speedup_all", "replay", "health", "step_ns", "hosts", "efficiency", "clock_error_ns")
    RUN_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    STRAGGLERS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    MISSING_RANKS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    CULPRITS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_ALL_FIELD_NUMBER: _ClassVar[int]
    REPLAY_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    EFFICIENCY_FIELD_NUMBER: _ClassVar[int]
    CLOCK_ERROR_NS_FIELD_NUMBER: _ClassVar[int]
    run: str
    ranks: _containers.RepeatedScalarFieldContainer[int]
    verdict: Verdict
    account: _containers.RepeatedCompositeFieldContainer[AccountRow]
    stragglers: _containers.RepeatedCompositeFieldContainer[Straggler]
    speedup: Speedup
    world_size: int
    missing_ranks: _containers.RepeatedScalarFieldContainer[int]
    groups: _containers.RepeatedCompositeFieldContainer[Group]
    culprits: _containers.RepeatedCompositeFieldContainer[Culprit]
    speedup_all: Speedup
    replay: Replay
    health: Health
    step_ns: float
    hosts: _containers.RepeatedCompositeFieldContainer[Host]
    efficiency: Efficiency
    clock_error_ns: float
    def __init__(self, run: _Optional[str] = ..., ranks: _Optional[_Iterable[int]] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., account: _Optional[_Iterable[_Union[AccountRow, _Mapping]]] = ..., stragglers: _Optional[_Iterable[_Union[Straggler, _Mapping]]] = ..., speedup: _Optional[_Union[Speedup, _Mapping]] = ..., world_size: _Optional[int] = ..., missing_ranks: _Optional[_Iterable[int]] = ..., groups: _Optional[_Iterable[_Union[Group, _Mapping]]] = ..., culprits: _Optional[_Iterable[_Union[Culprit, _Mapping]]] = ..., speedup_all: _Optional[_Union[Speedup, _Mapping]] = ..., replay: _Optional[_Union[Replay, _Mapping]] = ..., health: _Optional[_Union[Health, _Mapping]] = ..., step_ns: _Optional[float] = ..., hosts: _Optional[_Iterable[_Union[Host, _Mapping]]] = ..., efficiency: _Optional[_Union[Efficiency, _Mapping]] = ..., clock_error_ns: _Optional[float] = ...) -> None: ...

class Group(_message.Message):
    __slots__ = ("name", "kind", "ranks", "count", "wait_share", "wire_share", "bus_gbps", "transfers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    WAIT_SHARE_FIELD_NUMBER: _ClassVar[int]
    WIRE_SHARE_FIELD_NUMBER: _ClassVar[int]
    BUS_GBPS_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    ranks: _containers.RepeatedScalarFieldContainer[int]
    count: int
    wait_share: float
    wire_share: float
    bus_gbps: float
    transfers: _containers.RepeatedCompositeFieldContainer[Transfer]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., ranks: _Optional[_Iterable[int]] = ..., count: _Optional[int] = ..., wait_share: _Optional[float] = ..., wire_share: _Optional[float] = ..., bus_gbps: _Optional[float] = ..., transfers: _Optional[_Iterable[_Union[Transfer, _Mapping]]] = ...) -> None: ...

class Transfer(_message.Message):
    __slots__ = ("operation", "calls", "bytes", "wait_share", "wire_share", "bus_gbps")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WAIT_SHARE_FIELD_NUMBER: _ClassVar[int]
    WIRE_SHARE_FIELD_NUMBER: _ClassVar[int]
    BUS_GBPS_FIELD_NUMBER: _ClassVar[int]
    operation: str
    calls: float
    bytes: float
    wait_share: float
    wire_share: float
    bus_gbps: float
    def __init__(self, operation: _Optional[str] = ..., calls: _Optional[float] = ..., bytes: _Optional[float] = ..., wait_share: _Optional[float] = ..., wire_share: _Optional[float] = ..., bus_gbps: _Optional[float] = ...) -> None: ...

class Culprit(_message.Message):
    __slots__ = ("cause", "ranks", "cost_share", "evidence", "speedup", "fix", "title", "host")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    COST_SHARE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    cause: str
    ranks: _containers.RepeatedScalarFieldContainer[int]
    cost_share: float
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    speedup: Speedup
    fix: Fix
    title: str
    host: int
    def __init__(self, cause: _Optional[str] = ..., ranks: _Optional[_Iterable[int]] = ..., cost_share: _Optional[float] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., speedup: _Optional[_Union[Speedup, _Mapping]] = ..., fix: _Optional[_Union[Fix, _Mapping]] = ..., title: _Optional[str] = ..., host: _Optional[int] = ...) -> None: ...

class Host(_message.Message):
    __slots__ = ("number", "ranks")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    number: int
    ranks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, number: _Optional[int] = ..., ranks: _Optional[_Iterable[int]] = ...) -> None: ...

class Membership(_message.Message):
    __slots__ = ("begin_ns", "end_ns", "first_step", "last_step", "default_group")
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    LAST_STEP_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_GROUP_FIELD_NUMBER: _ClassVar[int]
    begin_ns: float
    end_ns: float
    first_step: int
    last_step: int
    default_group: str
    def __init__(self, begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., first_step: _Optional[int] = ..., last_step: _Optional[int] = ..., default_group: _Optional[str] = ...) -> None: ...

class Straggler(_message.Message):
    __slots__ = ("rank", "behind_share")
    RANK_FIELD_NUMBER: _ClassVar[int]
    BEHIND_SHARE_FIELD_NUMBER: _ClassVar[int]
    rank: int
    behind_share: float
    def __init__(self, rank: _Optional[int] = ..., behind_share: _Optional[float] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("schema", "run", "source", "witness", "evidence_source", "rank", "world_size", "device", "health", "window", "account", "verdict", "regimes", "findings", "plan", "replay", "disagreements", "phases", "unprofiled", "others", "membership", "job_headline", "memory", "efficiency", "revision", "input", "compilation", "headroom", "graphs", "step_parts", "program_file", "program", "operators", "run_time", "broken_parts")
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
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    MEMBERSHIP_FIELD_NUMBER: _ClassVar[int]
    JOB_HEADLINE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EFFICIENCY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    COMPILATION_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_FIELD_NUMBER: _ClassVar[int]
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    STEP_PARTS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FILE_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    RUN_TIME_FIELD_NUMBER: _ClassVar[int]
    BROKEN_PARTS_FIELD_NUMBER: _ClassVar[int]
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
    others: _containers.RepeatedCompositeFieldContainer[OtherVerdict]
    membership: Membership
    job_headline: str
    memory: Memory
    efficiency: Efficiency
    revision: str
    input: InputPipeline
    compilation: Compilation
    headroom: _containers.RepeatedCompositeFieldContainer[Headroom]
    graphs: GraphReplays
    step_parts: _containers.RepeatedCompositeFieldContainer[StepPart]
    program_file: str
    program: str
    operators: _containers.RepeatedCompositeFieldContainer[OperatorCount]
    run_time: RunTime
    broken_parts: _containers.RepeatedCompositeFieldContainer[BrokenPart]
    def __init__(self, schema: _Optional[int] = ..., run: _Optional[str] = ..., source: _Optional[str] = ..., witness: _Optional[str] = ..., evidence_source: _Optional[str] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., device: _Optional[_Union[Device, _Mapping]] = ..., health: _Optional[_Union[Health, _Mapping]] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., account: _Optional[_Iterable[_Union[AccountRow, _Mapping]]] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., regimes: _Optional[_Iterable[_Union[RegimeVerdict, _Mapping]]] = ..., findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ..., plan: _Optional[_Iterable[_Union[PlanStep, _Mapping]]] = ..., replay: _Optional[_Union[Replay, _Mapping]] = ..., disagreements: _Optional[_Iterable[_Union[Disagreement, _Mapping]]] = ..., phases: _Optional[_Iterable[_Union[Phase, _Mapping]]] = ..., unprofiled: _Optional[_Union[Unprofiled, _Mapping]] = ..., others: _Optional[_Iterable[_Union[OtherVerdict, _Mapping]]] = ..., membership: _Optional[_Union[Membership, _Mapping]] = ..., job_headline: _Optional[str] = ..., memory: _Optional[_Union[Memory, _Mapping]] = ..., efficiency: _Optional[_Union[Efficiency, _Mapping]] = ..., revision: _Optional[str] = ..., input: _Optional[_Union[InputPipeline, _Mapping]] = ..., compilation: _Optional[_Union[Compilation, _Mapping]] = ..., headroom: _Optional[_Iterable[_Union[Headroom, _Mapping]]] = ..., graphs: _Optional[_Union[GraphReplays, _Mapping]] = ..., step_parts: _Optional[_Iterable[_Union[StepPart, _Mapping]]] = ..., program_file: _Optional[str] = ..., program: _Optional[str] = ..., operators: _Optional[_Iterable[_Union[OperatorCount, _Mapping]]] = ..., run_time: _Optional[_Union[RunTime, _Mapping]] = ..., broken_parts: _Optional[_Iterable[_Union[BrokenPart, _Mapping]]] = ...) -> None: ...

class BrokenPart(_message.Message):
    __slots__ = ("part", "because")
    PART_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    part: str
    because: str
    def __init__(self, part: _Optional[str] = ..., because: _Optional[str] = ...) -> None: ...

class InputPipeline(_message.Message):
    __slots__ = ("stages", "basis", "batch_ns", "workers", "workers_needed", "waiting_share", "storage")
    STAGES_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    BATCH_NS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_NEEDED_FIELD_NUMBER: _ClassVar[int]
    WAITING_SHARE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_FIELD_NUMBER: _ClassVar[int]
    stages: _containers.RepeatedCompositeFieldContainer[InputStage]
    basis: str
    batch_ns: float
    workers: float
    workers_needed: float
    waiting_share: float
    storage: InputStorage
    def __init__(self, stages: _Optional[_Iterable[_Union[InputStage, _Mapping]]] = ..., basis: _Optional[str] = ..., batch_ns: _Optional[float] = ..., workers: _Optional[float] = ..., workers_needed: _Optional[float] = ..., waiting_share: _Optional[float] = ..., storage: _Optional[_Union[InputStorage, _Mapping]] = ...) -> None: ...

class InputStage(_message.Message):
    __slots__ = ("stage", "name", "share", "ns_per_batch", "place", "title")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    NS_PER_BATCH_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    stage: str
    name: str
    share: float
    ns_per_batch: float
    place: Place
    title: str
    def __init__(self, stage: _Optional[str] = ..., name: _Optional[str] = ..., share: _Optional[float] = ..., ns_per_batch: _Optional[float] = ..., place: _Optional[_Union[Place, _Mapping]] = ..., title: _Optional[str] = ...) -> None: ...

class InputStorage(_message.Message):
    __slots__ = ("kind", "filesystem", "read_bytes_per_batch", "disk_bytes_per_batch", "reads_per_batch", "opens_per_batch")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FILESYSTEM_FIELD_NUMBER: _ClassVar[int]
    READ_BYTES_PER_BATCH_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_PER_BATCH_FIELD_NUMBER: _ClassVar[int]
    READS_PER_BATCH_FIELD_NUMBER: _ClassVar[int]
    OPENS_PER_BATCH_FIELD_NUMBER: _ClassVar[int]
    kind: str
    filesystem: str
    read_bytes_per_batch: float
    disk_bytes_per_batch: float
    reads_per_batch: float
    opens_per_batch: float
    def __init__(self, kind: _Optional[str] = ..., filesystem: _Optional[str] = ..., read_bytes_per_batch: _Optional[float] = ..., disk_bytes_per_batch: _Optional[float] = ..., reads_per_batch: _Optional[float] = ..., opens_per_batch: _Optional[float] = ...) -> None: ...

class Compilation(_message.Message):
    __slots__ = ("functions", "breaks", "compile_ns", "regions", "outside", "missing")
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    BREAKS_FIELD_NUMBER: _ClassVar[int]
    COMPILE_NS_FIELD_NUMBER: _ClassVar[int]
    REGIONS_FIELD_NUMBER: _ClassVar[int]
    OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    functions: _containers.RepeatedCompositeFieldContainer[CompiledFunction]
    breaks: _containers.RepeatedCompositeFieldContainer[GraphBreak]
    compile_ns: float
    regions: float
    outside: _containers.RepeatedCompositeFieldContainer[OutsideGraph]
    missing: str
    def __init__(self, functions: _Optional[_Iterable[_Union[CompiledFunction, _Mapping]]] = ..., breaks: _Optional[_Iterable[_Union[GraphBreak, _Mapping]]] = ..., compile_ns: _Optional[float] = ..., regions: _Optional[float] = ..., outside: _Optional[_Iterable[_Union[OutsideGraph, _Mapping]]] = ..., missing: _Optional[str] = ...) -> None: ...

class GraphReplays(_message.Message):
    __slots__ = ("graphs", "launches", "outside", "outside_operations", "outside_ns")
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    OUTSIDE_OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    OUTSIDE_NS_FIELD_NUMBER: _ClassVar[int]
    graphs: _containers.RepeatedCompositeFieldContainer[ReplayedGraph]
    launches: float
    outside: _containers.RepeatedCompositeFieldContainer[OutsideGraph]
    outside_operations: float
    outside_ns: float
    def __init__(self, graphs: _Optional[_Iterable[_Union[ReplayedGraph, _Mapping]]] = ..., launches: _Optional[float] = ..., outside: _Optional[_Iterable[_Union[OutsideGraph, _Mapping]]] = ..., outside_operations: _Optional[float] = ..., outside_ns: _Optional[float] = ...) -> None: ...

class ReplayedGraph(_message.Message):
    __slots__ = ("operations", "launches", "device_ns", "idle_ns", "idle_before_ns", "call_ns", "place")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NS_FIELD_NUMBER: _ClassVar[int]
    IDLE_NS_FIELD_NUMBER: _ClassVar[int]
    IDLE_BEFORE_NS_FIELD_NUMBER: _ClassVar[int]
    CALL_NS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    operations: int
    launches: float
    device_ns: float
    idle_ns: float
    idle_before_ns: float
    call_ns: float
    place: Place
    def __init__(self, operations: _Optional[int] = ..., launches: _Optional[float] = ..., device_ns: _Optional[float] = ..., idle_ns: _Optional[float] = ..., idle_before_ns: _Optional[float] = ..., call_ns: _Optional[float] = ..., place: _Optional[_Union[Place, _Mapping]] = ...) -> None: ...

class OutsideGraph(_message.Message):
    __slots__ = ("name", "calls", "ns_per_step")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    NS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    name: str
    calls: float
    ns_per_step: float
    def __init__(self, name: _Optional[str] = ..., calls: _Optional[float] = ..., ns_per_step: _Optional[float] = ...) -> None: ...

class CompiledFunction(_message.Message):
    __slots__ = ("function", "file", "line", "compilations", "reasons", "ns", "failure")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    COMPILATIONS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    NS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    function: str
    file: str
    line: int
    compilations: int
    reasons: _containers.RepeatedScalarFieldContainer[str]
    ns: float
    failure: str
    def __init__(self, function: _Optional[str] = ..., file: _Optional[str] = ..., line: _Optional[int] = ..., compilations: _Optional[int] = ..., reasons: _Optional[_Iterable[str]] = ..., ns: _Optional[float] = ..., failure: _Optional[str] = ...) -> None: ...

class GraphBreak(_message.Message):
    __slots__ = ("function", "file", "line", "reason", "ns_per_step")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    function: str
    file: str
    line: int
    reason: str
    ns_per_step: float
    def __init__(self, function: _Optional[str] = ..., file: _Optional[str] = ..., line: _Optional[int] = ..., reason: _Optional[str] = ..., ns_per_step: _Optional[float] = ...) -> None: ...

class Efficiency(_message.Message):
    __slots__ = ("samples_per_second", "samples_per_step", "samples_basis", "tokens_per_second", "tokens_per_step", "mfu", "hfu", "peak_flops", "model_flops_per_step", "types", "tensor_share", "goodput", "joules_per_step", "notes")
    SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_BASIS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    MFU_FIELD_NUMBER: _ClassVar[int]
    HFU_FIELD_NUMBER: _ClassVar[int]
    PEAK_FLOPS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FLOPS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    TENSOR_SHARE_FIELD_NUMBER: _ClassVar[int]
    GOODPUT_FIELD_NUMBER: _ClassVar[int]
    JOULES_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    samples_per_second: float
    samples_per_step: float
    samples_basis: str
    tokens_per_second: float
    tokens_per_step: float
    mfu: float
    hfu: float
    peak_flops: float
    model_flops_per_step: float
    types: _containers.RepeatedCompositeFieldContainer[TypeShare]
    tensor_share: float
    goodput: float
    joules_per_step: float
    notes: _containers.RepeatedCompositeFieldContainer[EfficiencyNote]
    def __init__(self, samples_per_second: _Optional[float] = ..., samples_per_step: _Optional[float] = ..., samples_basis: _Optional[str] = ..., tokens_per_second: _Optional[float] = ..., tokens_per_step: _Optional[float] = ..., mfu: _Optional[float] = ..., hfu: _Optional[float] = ..., peak_flops: _Optional[float] = ..., model_flops_per_step: _Optional[float] = ..., types: _Optional[_Iterable[_Union[TypeShare, _Mapping]]] = ..., tensor_share: _Optional[float] = ..., goodput: _Optional[float] = ..., joules_per_step: _Optional[float] = ..., notes: _Optional[_Iterable[_Union[EfficiencyNote, _Mapping]]] = ...) -> None: ...

class TypeShare(_message.Message):
    __slots__ = ("dtype", "share", "peak_flops")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    PEAK_FLOPS_FIELD_NUMBER: _ClassVar[int]
    dtype: str
    share: float
    peak_flops: float
    def __init__(self, dtype: _Optional[str] = ..., share: _Optional[float] = ..., peak_flops: _Optional[float] = ...) -> None: ...

class EfficiencyNote(_message.Message):
    __slots__ = ("field", "title", "unit", "definition", "basis", "because")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    field: str
    title: str
    unit: str
    definition: str
    basis: str
    because: str
    def __init__(self, field: _Optional[str] = ..., title: _Optional[str] = ..., unit: _Optional[str] = ..., definition: _Optional[str] = ..., basis: _Optional[str] = ..., because: _Optional[str] = ...) -> None: ...

class Headroom(_message.Message):
    __slots__ = ("kind", "title", "summary", "share", "evidence")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    title: str
    summary: str
    share: float
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    def __init__(self, kind: _Optional[str] = ..., title: _Optional[str] = ..., summary: _Optional[str] = ..., share: _Optional[float] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ...) -> None: ...

class OtherVerdict(_message.Message):
    __slots__ = ("witness", "verdict", "trusted", "because")
    WITNESS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    witness: str
    verdict: Verdict
    trusted: bool
    because: str
    def __init__(self, witness: _Optional[str] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., trusted: bool = ..., because: _Optional[str] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("peak_bytes", "capacity_bytes", "headroom_bytes", "parts", "evidence_source", "kind", "allocated_bytes", "reserved_bytes", "estimated_bytes", "sites", "findings", "missing", "forecasts", "curve", "lifetimes", "history")
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_BYTES_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_SOURCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    RESERVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    FORECASTS_FIELD_NUMBER: _ClassVar[int]
    CURVE_FIELD_NUMBER: _ClassVar[int]
    LIFETIMES_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    peak_bytes: float
    capacity_bytes: float
    headroom_bytes: float
    parts: _containers.RepeatedCompositeFieldContainer[MemoryPart]
    evidence_source: str
    kind: str
    allocated_bytes: float
    reserved_bytes: float
    estimated_bytes: float
    sites: _containers.RepeatedCompositeFieldContainer[MemorySite]
    findings: _containers.RepeatedCompositeFieldContainer[MemoryFinding]
    missing: str
    forecasts: _containers.RepeatedCompositeFieldContainer[MemoryForecast]
    curve: MemoryCurve
    lifetimes: _containers.RepeatedCompositeFieldContainer[MemoryLifetime]
    history: MemoryHistory
    def __init__(self, peak_bytes: _Optional[float] = ..., capacity_bytes: _Optional[float] = ..., headroom_bytes: _Optional[float] = ..., parts: _Optional[_Iterable[_Union[MemoryPart, _Mapping]]] = ..., evidence_source: _Optional[str] = ..., kind: _Optional[str] = ..., allocated_bytes: _Optional[float] = ..., reserved_bytes: _Optional[float] = ..., estimated_bytes: _Optional[float] = ..., sites: _Optional[_Iterable[_Union[MemorySite, _Mapping]]] = ..., findings: _Optional[_Iterable[_Union[MemoryFinding, _Mapping]]] = ..., missing: _Optional[str] = ..., forecasts: _Optional[_Iterable[_Union[MemoryForecast, _Mapping]]] = ..., curve: _Optional[_Union[MemoryCurve, _Mapping]] = ..., lifetimes: _Optional[_Iterable[_Union[MemoryLifetime, _Mapping]]] = ..., history: _Optional[_Union[MemoryHistory, _Mapping]] = ...) -> None: ...

class MemoryLifetime(_message.Message):
    __slots__ = ("site", "begin_ns", "end_ns")
    SITE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    site: MemorySite
    begin_ns: float
    end_ns: float
    def __init__(self, site: _Optional[_Union[MemorySite, _Mapping]] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class MemoryHistory(_message.Message):
    __slots__ = ("peak_bytes", "end_bytes", "steps")
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    END_BYTES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    peak_bytes: _containers.RepeatedScalarFieldContainer[float]
    end_bytes: _containers.RepeatedScalarFieldContainer[float]
    steps: int
    def __init__(self, peak_bytes: _Optional[_Iterable[float]] = ..., end_bytes: _Optional[_Iterable[float]] = ..., steps: _Optional[int] = ...) -> None: ...

class MemoryCurve(_message.Message):
    __slots__ = ("times_ns", "series", "peak", "step_ns")
    TIMES_NS_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    PEAK_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    times_ns: _containers.RepeatedScalarFieldContainer[float]
    series: _containers.RepeatedCompositeFieldContainer[MemorySeries]
    peak: int
    step_ns: float
    def __init__(self, times_ns: _Optional[_Iterable[float]] = ..., series: _Optional[_Iterable[_Union[MemorySeries, _Mapping]]] = ..., peak: _Optional[int] = ..., step_ns: _Optional[float] = ...) -> None: ...

class MemorySeries(_message.Message):
    __slots__ = ("kind", "title", "bytes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    title: str
    bytes: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, kind: _Optional[str] = ..., title: _Optional[str] = ..., bytes: _Optional[_Iterable[float]] = ...) -> None: ...

class MemoryPart(_message.Message):
    __slots__ = ("kind", "bytes", "share", "title")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    bytes: float
    share: float
    title: str
    def __init__(self, kind: _Optional[str] = ..., bytes: _Optional[float] = ..., share: _Optional[float] = ..., title: _Optional[str] = ...) -> None: ...

class MemorySite(_message.Message):
    __slots__ = ("kind", "bytes", "blocks", "operator", "module", "file", "line", "function", "path", "others")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    bytes: float
    blocks: float
    operator: str
    module: str
    file: str
    line: int
    function: str
    path: _containers.RepeatedScalarFieldContainer[str]
    others: int
    def __init__(self, kind: _Optional[str] = ..., bytes: _Optional[float] = ..., blocks: _Optional[float] = ..., operator: _Optional[str] = ..., module: _Optional[str] = ..., file: _Optional[str] = ..., line: _Optional[int] = ..., function: _Optional[str] = ..., path: _Optional[_Iterable[str]] = ..., others: _Optional[int] = ...) -> None: ...

class MemoryFinding(_message.Message):
    __slots__ = ("cause", "title", "severity", "bytes", "evidence", "fix", "headline")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    cause: str
    title: str
    severity: str
    bytes: float
    evidence: _containers.RepeatedCompositeFieldContainer[Evidence]
    fix: Fix
    headline: str
    def __init__(self, cause: _Optional[str] = ..., title: _Optional[str] = ..., severity: _Optional[str] = ..., bytes: _Optional[float] = ..., evidence: _Optional[_Iterable[_Union[Evidence, _Mapping]]] = ..., fix: _Optional[_Union[Fix, _Mapping]] = ..., headline: _Optional[str] = ...) -> None: ...

class MemoryForecast(_message.Message):
    __slots__ = ("change", "title", "peak_bytes", "low_bytes", "high_bytes", "fits", "assumes")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    HIGH_BYTES_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    ASSUMES_FIELD_NUMBER: _ClassVar[int]
    change: str
    title: str
    peak_bytes: float
    low_bytes: float
    high_bytes: float
    fits: bool
    assumes: str
    def __init__(self, change: _Optional[str] = ..., title: _Optional[str] = ..., peak_bytes: _Optional[float] = ..., low_bytes: _Optional[float] = ..., high_bytes: _Optional[float] = ..., fits: bool = ..., assumes: _Optional[str] = ...) -> None: ...

class RunTime(_message.Message):
    __slots__ = ("begin_ns", "elapsed_ns", "parts")
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_NS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    begin_ns: float
    elapsed_ns: float
    parts: _containers.RepeatedCompositeFieldContainer[RunPart]
    def __init__(self, begin_ns: _Optional[float] = ..., elapsed_ns: _Optional[float] = ..., parts: _Optional[_Iterable[_Union[RunPart, _Mapping]]] = ...) -> None: ...

class StepPart(_message.Message):
    __slots__ = ("name", "place", "share", "calls", "account")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    place: Place
    share: float
    calls: float
    account: _containers.RepeatedCompositeFieldContainer[AccountRow]
    def __init__(self, name: _Optional[str] = ..., place: _Optional[_Union[Place, _Mapping]] = ..., share: _Optional[float] = ..., calls: _Optional[float] = ..., account: _Optional[_Iterable[_Union[AccountRow, _Mapping]]] = ...) -> None: ...

class OperatorCount(_message.Message):
    __slots__ = ("name", "per_step", "place")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PER_STEP_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    per_step: float
    place: Place
    def __init__(self, name: _Optional[str] = ..., per_step: _Optional[float] = ..., place: _Optional[_Union[Place, _Mapping]] = ...) -> None: ...

class RunPart(_message.Message):
    __slots__ = ("kind", "title", "meaning", "ns", "share", "bins")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BINS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    title: str
    meaning: str
    ns: float
    share: float
    bins: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, kind: _Optional[str] = ..., title: _Optional[str] = ..., meaning: _Optional[str] = ..., ns: _Optional[float] = ..., share: _Optional[float] = ..., bins: _Optional[_Iterable[float]] = ...) -> None: ...

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
    __slots__ = ("step_ns", "steps", "ratio", "sentence", "step_times_ns", "run_step_ns", "run_steps")
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    STEP_TIMES_NS_FIELD_NUMBER: _ClassVar[int]
    RUN_STEP_NS_FIELD_NUMBER: _ClassVar[int]
    RUN_STEPS_FIELD_NUMBER: _ClassVar[int]
    step_ns: float
    steps: int
    ratio: float
    sentence: str
    step_times_ns: _containers.RepeatedScalarFieldContainer[float]
    run_step_ns: float
    run_steps: int
    def __init__(self, step_ns: _Optional[float] = ..., steps: _Optional[int] = ..., ratio: _Optional[float] = ..., sentence: _Optional[str] = ..., step_times_ns: _Optional[_Iterable[float]] = ..., run_step_ns: _Optional[float] = ..., run_steps: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("steps", "basis", "step_ns", "begin_ns", "end_ns", "step_times_ns", "recorded_step_ns", "mean_error", "correction")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    STEP_TIMES_NS_FIELD_NUMBER: _ClassVar[int]
    RECORDED_STEP_NS_FIELD_NUMBER: _ClassVar[int]
    MEAN_ERROR_FIELD_NUMBER: _ClassVar[int]
    CORRECTION_FIELD_NUMBER: _ClassVar[int]
    steps: int
    basis: str
    step_ns: Spread
    begin_ns: float
    end_ns: float
    step_times_ns: _containers.RepeatedScalarFieldContainer[float]
    recorded_step_ns: float
    mean_error: float
    correction: str
    def __init__(self, steps: _Optional[int] = ..., basis: _Optional[str] = ..., step_ns: _Optional[_Union[Spread, _Mapping]] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., step_times_ns: _Optional[_Iterable[float]] = ..., recorded_step_ns: _Optional[float] = ..., mean_error: _Optional[float] = ..., correction: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("regime", "share", "severity", "confidence", "headline", "title", "situation", "action", "memory_alert", "action_cause")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SITUATION_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ALERT_FIELD_NUMBER: _ClassVar[int]
    ACTION_CAUSE_FIELD_NUMBER: _ClassVar[int]
    regime: str
    share: float
    severity: str
    confidence: str
    headline: str
    title: str
    situation: str
    action: str
    memory_alert: MemoryAlert
    action_cause: str
    def __init__(self, regime: _Optional[str] = ..., share: _Optional[float] = ..., severity: _Optional[str] = ..., confidence: _Optional[str] = ..., headline: _Optional[str] = ..., title: _Optional[str] = ..., situation: _Optional[str] = ..., action: _Optional[str] = ..., memory_alert: _Optional[_Union[MemoryAlert, _Mapping]] = ..., action_cause: _Optional[str] = ...) -> None: ...

class MemoryAlert(_message.Message):
    __slots__ = ("cause", "severity", "headline", "leads", "action", "title")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    LEADS_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    cause: str
    severity: str
    headline: str
    leads: bool
    action: str
    title: str
    def __init__(self, cause: _Optional[str] = ..., severity: _Optional[str] = ..., headline: _Optional[str] = ..., leads: bool = ..., action: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("file", "line", "function", "module", "share", "block", "chain", "exact", "file_bytes", "file_time_us", "source", "source_begin", "hottest_line", "hottest_share", "other_lines")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    FILE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILE_TIME_US_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_BEGIN_FIELD_NUMBER: _ClassVar[int]
    HOTTEST_LINE_FIELD_NUMBER: _ClassVar[int]
    HOTTEST_SHARE_FIELD_NUMBER: _ClassVar[int]
    OTHER_LINES_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    function: str
    module: str
    share: float
    block: str
    chain: _containers.RepeatedScalarFieldContainer[str]
    exact: bool
    file_bytes: float
    file_time_us: float
    source: _containers.RepeatedScalarFieldContainer[str]
    source_begin: int
    hottest_line: int
    hottest_share: float
    other_lines: _containers.RepeatedCompositeFieldContainer[LineShare]
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., function: _Optional[str] = ..., module: _Optional[str] = ..., share: _Optional[float] = ..., block: _Optional[str] = ..., chain: _Optional[_Iterable[str]] = ..., exact: bool = ..., file_bytes: _Optional[float] = ..., file_time_us: _Optional[float] = ..., source: _Optional[_Iterable[str]] = ..., source_begin: _Optional[int] = ..., hottest_line: _Optional[int] = ..., hottest_share: _Optional[float] = ..., other_lines: _Optional[_Iterable[_Union[LineShare, _Mapping]]] = ...) -> None: ...

class LineShare(_message.Message):
    __slots__ = ("line", "share")
    LINE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    line: int
    share: float
    def __init__(self, line: _Optional[int] = ..., share: _Optional[float] = ...) -> None: ...

class Speedup(_message.Message):
    __slots__ = ("expected", "low", "high", "basis", "assumes", "because", "unless", "predicted")
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    ASSUMES_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    UNLESS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIELD_NUMBER: _ClassVar[int]
    expected: float
    low: float
    high: float
    basis: str
    assumes: str
    because: str
    unless: str
    predicted: float
    def __init__(self, expected: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., basis: _Optional[str] = ..., assumes: _Optional[str] = ..., because: _Optional[str] = ..., unless: _Optional[str] = ..., predicted: _Optional[float] = ...) -> None: ...

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
    __slots__ = ("summary", "code", "confirm", "action", "documentation", "trial", "command", "patch")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    DOCUMENTATION_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    summary: str
    code: str
    confirm: str
    action: str
    documentation: str
    trial: str
    command: str
    patch: str
    def __init__(self, summary: _Optional[str] = ..., code: _Optional[str] = ..., confirm: _Optional[str] = ..., action: _Optional[str] = ..., documentation: _Optional[str] = ..., trial: _Optional[str] = ..., command: _Optional[str] = ..., patch: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("state", "logdir", "runs", "problems", "trainings")
    STATE_FIELD_NUMBER: _ClassVar[int]
    LOGDIR_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    TRAININGS_FIELD_NUMBER: _ClassVar[int]
    state: str
    logdir: str
    runs: _containers.RepeatedCompositeFieldContainer[RunEntry]
    problems: _containers.RepeatedScalarFieldContainer[str]
    trainings: _containers.RepeatedCompositeFieldContainer[Training]
    def __init__(self, state: _Optional[str] = ..., logdir: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[RunEntry, _Mapping]]] = ..., problems: _Optional[_Iterable[str]] = ..., trainings: _Optional[_Iterable[_Union[Training, _Mapping]]] = ...) -> None: ...

class Training(_message.Message):
    __slots__ = ("members", "because", "job", "memory_alert")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ALERT_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedScalarFieldContainer[int]
    because: str
    job: TrainingJob
    memory_alert: MemoryAlert
    def __init__(self, members: _Optional[_Iterable[int]] = ..., because: _Optional[str] = ..., job: _Optional[_Union[TrainingJob, _Mapping]] = ..., memory_alert: _Optional[_Union[MemoryAlert, _Mapping]] = ...) -> None: ...

class TrainingJob(_message.Message):
    __slots__ = ("verdict", "world_size", "ranks", "gain", "action")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    verdict: Verdict
    world_size: int
    ranks: int
    gain: Speedup
    action: str
    def __init__(self, verdict: _Optional[_Union[Verdict, _Mapping]] = ..., world_size: _Optional[int] = ..., ranks: _Optional[int] = ..., gain: _Optional[_Union[Speedup, _Mapping]] = ..., action: _Optional[str] = ...) -> None: ...

class RunEntry(_message.Message):
    __slots__ = ("id", "run", "source", "size_bytes", "state", "progress", "health", "verdict", "step_ns", "reason", "step_times_ns", "witness", "evidence_source", "live", "device", "action", "gain", "review", "open_findings", "rank", "world_size", "lost_share", "efficiency", "peak_bytes", "headroom_bytes", "revision", "modified_unix_ns")
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
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    OPEN_FINDINGS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOST_SHARE_FIELD_NUMBER: _ClassVar[int]
    EFFICIENCY_FIELD_NUMBER: _ClassVar[int]
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_BYTES_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
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
    review: _review_pb2.Review
    open_findings: int
    rank: int
    world_size: int
    lost_share: float
    efficiency: Efficiency
    peak_bytes: float
    headroom_bytes: float
    revision: str
    modified_unix_ns: float
    def __init__(self, id: _Optional[str] = ..., run: _Optional[str] = ..., source: _Optional[str] = ..., size_bytes: _Optional[float] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., health: _Optional[str] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., step_ns: _Optional[float] = ..., reason: _Optional[str] = ..., step_times_ns: _Optional[_Iterable[float]] = ..., witness: _Optional[str] = ..., evidence_source: _Optional[str] = ..., live: bool = ..., device: _Optional[str] = ..., action: _Optional[str] = ..., gain: _Optional[_Union[Speedup, _Mapping]] = ..., review: _Optional[_Union[_review_pb2.Review, _Mapping]] = ..., open_findings: _Optional[int] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., lost_share: _Optional[float] = ..., efficiency: _Optional[_Union[Efficiency, _Mapping]] = ..., peak_bytes: _Optional[float] = ..., headroom_bytes: _Optional[float] = ..., revision: _Optional[str] = ..., modified_unix_ns: _Optional[float] = ...) -> None: ...

class ReportAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "report", "review")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    report: Report
    review: _review_pb2.Review
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., report: _Optional[_Union[Report, _Mapping]] = ..., review: _Optional[_Union[_review_pb2.Review, _Mapping]] = ...) -> None: ...
