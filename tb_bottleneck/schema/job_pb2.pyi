from tb_bottleneck.schema import bottleneck_pb2 as _bottleneck_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "basis", "job", "ranks", "steps", "speaker", "because", "command", "saved_ns", "other_version", "pipeline")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    SPEAKER_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SAVED_NS_FIELD_NUMBER: _ClassVar[int]
    OTHER_VERSION_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    basis: str
    job: _bottleneck_pb2.Job
    ranks: RankTable
    steps: StepTable
    speaker: int
    because: str
    command: str
    saved_ns: float
    other_version: bool
    pipeline: PipelineTable
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., basis: _Optional[str] = ..., job: _Optional[_Union[_bottleneck_pb2.Job, _Mapping]] = ..., ranks: _Optional[_Union[RankTable, _Mapping]] = ..., steps: _Optional[_Union[StepTable, _Mapping]] = ..., speaker: _Optional[int] = ..., because: _Optional[str] = ..., command: _Optional[str] = ..., saved_ns: _Optional[float] = ..., other_version: bool = ..., pipeline: _Optional[_Union[PipelineTable, _Mapping]] = ...) -> None: ...

class RankTable(_message.Message):
    __slots__ = ("rank", "id", "source", "host", "stage", "step_ns", "regime", "severity", "account", "excess_share", "wait_share", "wire_share")
    RANK_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    EXCESS_SHARE_FIELD_NUMBER: _ClassVar[int]
    WAIT_SHARE_FIELD_NUMBER: _ClassVar[int]
    WIRE_SHARE_FIELD_NUMBER: _ClassVar[int]
    rank: _containers.RepeatedScalarFieldContainer[int]
    id: _containers.RepeatedScalarFieldContainer[str]
    source: _containers.RepeatedScalarFieldContainer[str]
    host: _containers.RepeatedScalarFieldContainer[int]
    stage: _containers.RepeatedScalarFieldContainer[int]
    step_ns: _containers.RepeatedScalarFieldContainer[float]
    regime: _containers.RepeatedScalarFieldContainer[str]
    severity: _containers.RepeatedScalarFieldContainer[str]
    account: _containers.RepeatedCompositeFieldContainer[RegimeShares]
    excess_share: _containers.RepeatedScalarFieldContainer[float]
    wait_share: _containers.RepeatedScalarFieldContainer[float]
    wire_share: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, rank: _Optional[_Iterable[int]] = ..., id: _Optional[_Iterable[str]] = ..., source: _Optional[_Iterable[str]] = ..., host: _Optional[_Iterable[int]] = ..., stage: _Optional[_Iterable[int]] = ..., step_ns: _Optional[_Iterable[float]] = ..., regime: _Optional[_Iterable[str]] = ..., severity: _Optional[_Iterable[str]] = ..., account: _Optional[_Iterable[_Union[RegimeShares, _Mapping]]] = ..., excess_share: _Optional[_Iterable[float]] = ..., wait_share: _Optional[_Iterable[float]] = ..., wire_share: _Optional[_Iterable[float]] = ...) -> None: ...

class RegimeShares(_message.Message):
    __slots__ = ("regime", "share")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    regime: str
    share: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, regime: _Optional[str] = ..., share: _Optional[_Iterable[float]] = ...) -> None: ...

class StepTable(_message.Message):
    __slots__ = ("count", "begin_ns", "end_ns", "account", "wait_share")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    WAIT_SHARE_FIELD_NUMBER: _ClassVar[int]
    count: int
    begin_ns: _containers.RepeatedScalarFieldContainer[float]
    end_ns: _containers.RepeatedScalarFieldContainer[float]
    account: _containers.RepeatedCompositeFieldContainer[RegimeShares]
    wait_share: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, count: _Optional[int] = ..., begin_ns: _Optional[_Iterable[float]] = ..., end_ns: _Optional[_Iterable[float]] = ..., account: _Optional[_Iterable[_Union[RegimeShares, _Mapping]]] = ..., wait_share: _Optional[_Iterable[float]] = ...) -> None: ...

class PipelineTable(_message.Message):
    __slots__ = ("step", "rank", "phase", "microbatch", "begin_ns", "end_ns", "critical")
    STEP_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    MICROBATCH_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    CRITICAL_FIELD_NUMBER: _ClassVar[int]
    step: int
    rank: _containers.RepeatedScalarFieldContainer[int]
    phase: _containers.RepeatedScalarFieldContainer[str]
    microbatch: _containers.RepeatedScalarFieldContainer[int]
    begin_ns: _containers.RepeatedScalarFieldContainer[float]
    end_ns: _containers.RepeatedScalarFieldContainer[float]
    critical: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, step: _Optional[int] = ..., rank: _Optional[_Iterable[int]] = ..., phase: _Optional[_Iterable[str]] = ..., microbatch: _Optional[_Iterable[int]] = ..., begin_ns: _Optional[_Iterable[float]] = ..., end_ns: _Optional[_Iterable[float]] = ..., critical: _Optional[_Iterable[bool]] = ...) -> None: ...
