from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Pending(_message.Message):
    __slots__ = ("state", "progress")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    state: str
    progress: float
    def __init__(self, state: _Optional[str] = ..., progress: _Optional[float] = ...) -> None: ...

class TimelineAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "problem", "timeline")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    problem: str
    timeline: Timeline
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., problem: _Optional[str] = ..., timeline: _Optional[_Union[Timeline, _Mapping]] = ...) -> None: ...

class Timeline(_message.Message):
    __slots__ = ("begin_ns", "end_ns", "first_ns", "last_ns", "resolution_ns", "lanes", "names", "keys", "lanes_left_out")
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    FIRST_NS_FIELD_NUMBER: _ClassVar[int]
    LAST_NS_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_NS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LANES_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    begin_ns: float
    end_ns: float
    first_ns: float
    last_ns: float
    resolution_ns: float
    lanes: _containers.RepeatedCompositeFieldContainer[Lane]
    names: _containers.RepeatedScalarFieldContainer[str]
    keys: _containers.RepeatedScalarFieldContainer[str]
    lanes_left_out: int
    def __init__(self, begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., first_ns: _Optional[float] = ..., last_ns: _Optional[float] = ..., resolution_ns: _Optional[float] = ..., lanes: _Optional[_Iterable[_Union[Lane, _Mapping]]] = ..., names: _Optional[_Iterable[str]] = ..., keys: _Optional[_Iterable[str]] = ..., lanes_left_out: _Optional[int] = ...) -> None: ...

class Lane(_message.Message):
    __slots__ = ("group", "title", "track", "depth", "begin_ns", "length_ns", "key", "name", "count", "busy")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_NS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    group: str
    title: str
    track: str
    depth: int
    begin_ns: _containers.RepeatedScalarFieldContainer[float]
    length_ns: _containers.RepeatedScalarFieldContainer[float]
    key: _containers.RepeatedScalarFieldContainer[int]
    name: _containers.RepeatedScalarFieldContainer[int]
    count: _containers.RepeatedScalarFieldContainer[int]
    busy: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, group: _Optional[str] = ..., title: _Optional[str] = ..., track: _Optional[str] = ..., depth: _Optional[int] = ..., begin_ns: _Optional[_Iterable[float]] = ..., length_ns: _Optional[_Iterable[float]] = ..., key: _Optional[_Iterable[int]] = ..., name: _Optional[_Iterable[int]] = ..., count: _Optional[_Iterable[int]] = ..., busy: _Optional[_Iterable[float]] = ...) -> None: ...

class TablesAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "problem", "tables")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    problem: str
    tables: Tables
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., problem: _Optional[str] = ..., tables: _Optional[_Union[Tables, _Mapping]] = ...) -> None: ...

class Tables(_message.Message):
    __slots__ = ("window_ns", "steps", "kernels", "kernels_left_out", "operators", "operators_left_out", "syncs", "copies", "roofline", "step_account", "communications", "critical_path")
    WINDOW_NS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    SYNCS_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    ROOFLINE_FIELD_NUMBER: _ClassVar[int]
    STEP_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    COMMUNICATIONS_FIELD_NUMBER: _ClassVar[int]
    CRITICAL_PATH_FIELD_NUMBER: _ClassVar[int]
    window_ns: float
    steps: int
    kernels: _containers.RepeatedCompositeFieldContainer[KernelRow]
    kernels_left_out: LeftOut
    operators: _containers.RepeatedCompositeFieldContainer[OperatorRow]
    operators_left_out: LeftOut
    syncs: _containers.RepeatedCompositeFieldContainer[SyncRow]
    copies: _containers.RepeatedCompositeFieldContainer[CopyRow]
    roofline: Roofline
    step_account: StepColumns
    communications: _containers.RepeatedCompositeFieldContainer[CommunicationRow]
    critical_path: _containers.RepeatedCompositeFieldContainer[CriticalRow]
    def __init__(self, window_ns: _Optional[float] = ..., steps: _Optional[int] = ..., kernels: _Optional[_Iterable[_Union[KernelRow, _Mapping]]] = ..., kernels_left_out: _Optional[_Union[LeftOut, _Mapping]] = ..., operators: _Optional[_Iterable[_Union[OperatorRow, _Mapping]]] = ..., operators_left_out: _Optional[_Union[LeftOut, _Mapping]] = ..., syncs: _Optional[_Iterable[_Union[SyncRow, _Mapping]]] = ..., copies: _Optional[_Iterable[_Union[CopyRow, _Mapping]]] = ..., roofline: _Optional[_Union[Roofline, _Mapping]] = ..., step_account: _Optional[_Union[StepColumns, _Mapping]] = ..., communications: _Optional[_Iterable[_Union[CommunicationRow, _Mapping]]] = ..., critical_path: _Optional[_Iterable[_Union[CriticalRow, _Mapping]]] = ...) -> None: ...

class LeftOut(_message.Message):
    __slots__ = ("rows", "total_ns")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    total_ns: float
    def __init__(self, rows: _Optional[int] = ..., total_ns: _Optional[float] = ...) -> None: ...

class KernelRow(_message.Message):
    __slots__ = ("name", "regime", "calls", "total_ns", "share", "mean_ns", "reached", "roof", "precision", "unit", "begin_ns", "end_ns", "min_ns", "max_ns", "blocks_per_sm", "occupancy")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    MEAN_NS_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    ROOF_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    MIN_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_PER_SM_FIELD_NUMBER: _ClassVar[int]
    OCCUPANCY_FIELD_NUMBER: _ClassVar[int]
    name: str
    regime: str
    calls: int
    total_ns: float
    share: float
    mean_ns: float
    reached: float
    roof: str
    precision: str
    unit: str
    begin_ns: float
    end_ns: float
    min_ns: float
    max_ns: float
    blocks_per_sm: float
    occupancy: float
    def __init__(self, name: _Optional[str] = ..., regime: _Optional[str] = ..., calls: _Optional[int] = ..., total_ns: _Optional[float] = ..., share: _Optional[float] = ..., mean_ns: _Optional[float] = ..., reached: _Optional[float] = ..., roof: _Optional[str] = ..., precision: _Optional[str] = ..., unit: _Optional[str] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., min_ns: _Optional[float] = ..., max_ns: _Optional[float] = ..., blocks_per_sm: _Optional[float] = ..., occupancy: _Optional[float] = ...) -> None: ...

class OperatorRow(_message.Message):
    __slots__ = ("name", "calls", "host_ns", "device_ns", "share", "reached", "roof", "begin_ns", "end_ns", "host_total_ns", "device_total_ns", "min_ns", "mean_ns", "max_ns", "kernels", "tensor_eligible", "tensor_share")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    HOST_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    ROOF_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    HOST_TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    MIN_NS_FIELD_NUMBER: _ClassVar[int]
    MEAN_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    TENSOR_ELIGIBLE_FIELD_NUMBER: _ClassVar[int]
    TENSOR_SHARE_FIELD_NUMBER: _ClassVar[int]
    name: str
    calls: int
    host_ns: float
    device_ns: float
    share: float
    reached: float
    roof: str
    begin_ns: float
    end_ns: float
    host_total_ns: float
    device_total_ns: float
    min_ns: float
    mean_ns: float
    max_ns: float
    kernels: float
    tensor_eligible: bool
    tensor_share: float
    def __init__(self, name: _Optional[str] = ..., calls: _Optional[int] = ..., host_ns: _Optional[float] = ..., device_ns: _Optional[float] = ..., share: _Optional[float] = ..., reached: _Optional[float] = ..., roof: _Optional[str] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., host_total_ns: _Optional[float] = ..., device_total_ns: _Optional[float] = ..., min_ns: _Optional[float] = ..., mean_ns: _Optional[float] = ..., max_ns: _Optional[float] = ..., kernels: _Optional[float] = ..., tensor_eligible: bool = ..., tensor_share: _Optional[float] = ...) -> None: ...

class SyncRow(_message.Message):
    __slots__ = ("kind", "operator", "line", "calls", "waited_ns", "cost_ns", "share", "begin_ns", "end_ns")
    KIND_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    WAITED_NS_FIELD_NUMBER: _ClassVar[int]
    COST_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    operator: str
    line: str
    calls: int
    waited_ns: float
    cost_ns: float
    share: float
    begin_ns: float
    end_ns: float
    def __init__(self, kind: _Optional[str] = ..., operator: _Optional[str] = ..., line: _Optional[str] = ..., calls: _Optional[int] = ..., waited_ns: _Optional[float] = ..., cost_ns: _Optional[float] = ..., share: _Optional[float] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class CopyRow(_message.Message):
    __slots__ = ("name", "calls", "bytes", "total_ns", "share", "bytes_per_s", "begin_ns", "end_ns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    name: str
    calls: int
    bytes: float
    total_ns: float
    share: float
    bytes_per_s: float
    begin_ns: float
    end_ns: float
    def __init__(self, name: _Optional[str] = ..., calls: _Optional[int] = ..., bytes: _Optional[float] = ..., total_ns: _Optional[float] = ..., share: _Optional[float] = ..., bytes_per_s: _Optional[float] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class CommunicationRow(_message.Message):
    __slots__ = ("operation", "group", "ranks", "calls", "bytes", "total_ns", "share", "min_ns", "mean_ns", "max_ns", "algorithm_bytes_per_s", "bus_bytes_per_s", "begin_ns", "end_ns")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    MIN_NS_FIELD_NUMBER: _ClassVar[int]
    MEAN_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    BUS_BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    operation: str
    group: str
    ranks: int
    calls: int
    bytes: float
    total_ns: float
    share: float
    min_ns: float
    mean_ns: float
    max_ns: float
    algorithm_bytes_per_s: float
    bus_bytes_per_s: float
    begin_ns: float
    end_ns: float
    def __init__(self, operation: _Optional[str] = ..., group: _Optional[str] = ..., ranks: _Optional[int] = ..., calls: _Optional[int] = ..., bytes: _Optional[float] = ..., total_ns: _Optional[float] = ..., share: _Optional[float] = ..., min_ns: _Optional[float] = ..., mean_ns: _Optional[float] = ..., max_ns: _Optional[float] = ..., algorithm_bytes_per_s: _Optional[float] = ..., bus_bytes_per_s: _Optional[float] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class CriticalRow(_message.Message):
    __slots__ = ("name", "regime", "count", "total_ns", "share", "begin_ns", "end_ns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    name: str
    regime: str
    count: int
    total_ns: float
    share: float
    begin_ns: float
    end_ns: float
    def __init__(self, name: _Optional[str] = ..., regime: _Optional[str] = ..., count: _Optional[int] = ..., total_ns: _Optional[float] = ..., share: _Optional[float] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class DetailsAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "problem", "details")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    problem: str
    details: Details
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., problem: _Optional[str] = ..., details: _Optional[_Union[Details, _Mapping]] = ...) -> None: ...

class Details(_message.Message):
    __slots__ = ("name", "shapes", "callers", "kernels", "lines", "modules")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    CALLERS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    MODULES_FIELD_NUMBER: _ClassVar[int]
    name: str
    shapes: _containers.RepeatedCompositeFieldContainer[DetailsRow]
    callers: _containers.RepeatedCompositeFieldContainer[DetailsRow]
    kernels: _containers.RepeatedCompositeFieldContainer[DetailsRow]
    lines: _containers.RepeatedCompositeFieldContainer[DetailsRow]
    modules: _containers.RepeatedCompositeFieldContainer[DetailsRow]
    def __init__(self, name: _Optional[str] = ..., shapes: _Optional[_Iterable[_Union[DetailsRow, _Mapping]]] = ..., callers: _Optional[_Iterable[_Union[DetailsRow, _Mapping]]] = ..., kernels: _Optional[_Iterable[_Union[DetailsRow, _Mapping]]] = ..., lines: _Optional[_Iterable[_Union[DetailsRow, _Mapping]]] = ..., modules: _Optional[_Iterable[_Union[DetailsRow, _Mapping]]] = ...) -> None: ...

class DetailsRow(_message.Message):
    __slots__ = ("name", "calls", "device_ns", "host_ns", "min_ns", "mean_ns", "max_ns", "begin_ns", "end_ns", "chain")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NS_FIELD_NUMBER: _ClassVar[int]
    HOST_NS_FIELD_NUMBER: _ClassVar[int]
    MIN_NS_FIELD_NUMBER: _ClassVar[int]
    MEAN_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    name: str
    calls: int
    device_ns: float
    host_ns: float
    min_ns: float
    mean_ns: float
    max_ns: float
    begin_ns: float
    end_ns: float
    chain: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., calls: _Optional[int] = ..., device_ns: _Optional[float] = ..., host_ns: _Optional[float] = ..., min_ns: _Optional[float] = ..., mean_ns: _Optional[float] = ..., max_ns: _Optional[float] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ..., chain: _Optional[_Iterable[str]] = ...) -> None: ...

class FindAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "problem", "count", "total_ns", "rows")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    problem: str
    count: int
    total_ns: float
    rows: _containers.RepeatedCompositeFieldContainer[FoundRow]
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., problem: _Optional[str] = ..., count: _Optional[int] = ..., total_ns: _Optional[float] = ..., rows: _Optional[_Iterable[_Union[FoundRow, _Mapping]]] = ...) -> None: ...

class FoundRow(_message.Message):
    __slots__ = ("name", "track", "begin_ns", "end_ns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    name: str
    track: str
    begin_ns: float
    end_ns: float
    def __init__(self, name: _Optional[str] = ..., track: _Optional[str] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class DependenciesAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "problem", "dependencies")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    problem: str
    dependencies: Dependencies
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., problem: _Optional[str] = ..., dependencies: _Optional[_Union[Dependencies, _Mapping]] = ...) -> None: ...

class Dependencies(_message.Message):
    __slots__ = ("name", "waited_for", "waited_ns", "awaited", "launch", "operators", "modules", "lines", "ranges", "bytes", "blocks", "occupancy", "followers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WAITED_FOR_FIELD_NUMBER: _ClassVar[int]
    WAITED_NS_FIELD_NUMBER: _ClassVar[int]
    AWAITED_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    MODULES_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    OCCUPANCY_FIELD_NUMBER: _ClassVar[int]
    FOLLOWERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    waited_for: str
    waited_ns: float
    awaited: TimelineRow
    launch: TimelineRow
    operators: _containers.RepeatedScalarFieldContainer[str]
    modules: _containers.RepeatedScalarFieldContainer[str]
    lines: _containers.RepeatedScalarFieldContainer[str]
    ranges: _containers.RepeatedScalarFieldContainer[str]
    bytes: float
    blocks: int
    occupancy: float
    followers: _containers.RepeatedCompositeFieldContainer[TimelineRow]
    def __init__(self, name: _Optional[str] = ..., waited_for: _Optional[str] = ..., waited_ns: _Optional[float] = ..., awaited: _Optional[_Union[TimelineRow, _Mapping]] = ..., launch: _Optional[_Union[TimelineRow, _Mapping]] = ..., operators: _Optional[_Iterable[str]] = ..., modules: _Optional[_Iterable[str]] = ..., lines: _Optional[_Iterable[str]] = ..., ranges: _Optional[_Iterable[str]] = ..., bytes: _Optional[float] = ..., blocks: _Optional[int] = ..., occupancy: _Optional[float] = ..., followers: _Optional[_Iterable[_Union[TimelineRow, _Mapping]]] = ...) -> None: ...

class TimelineRow(_message.Message):
    __slots__ = ("name", "begin_ns", "end_ns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    name: str
    begin_ns: float
    end_ns: float
    def __init__(self, name: _Optional[str] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class Roofline(_message.Message):
    __slots__ = ("problem", "fix", "bandwidth", "basis", "roofs", "points")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    BANDWIDTH_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    ROOFS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    problem: str
    fix: str
    bandwidth: float
    basis: str
    roofs: _containers.RepeatedCompositeFieldContainer[Roof]
    points: _containers.RepeatedCompositeFieldContainer[RoofPoint]
    def __init__(self, problem: _Optional[str] = ..., fix: _Optional[str] = ..., bandwidth: _Optional[float] = ..., basis: _Optional[str] = ..., roofs: _Optional[_Iterable[_Union[Roof, _Mapping]]] = ..., points: _Optional[_Iterable[_Union[RoofPoint, _Mapping]]] = ...) -> None: ...

class Roof(_message.Message):
    __slots__ = ("precision", "flops_per_s")
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    FLOPS_PER_S_FIELD_NUMBER: _ClassVar[int]
    precision: str
    flops_per_s: float
    def __init__(self, precision: _Optional[str] = ..., flops_per_s: _Optional[float] = ...) -> None: ...

class RoofPoint(_message.Message):
    __slots__ = ("name", "shapes", "precision", "intensity", "flops_per_s", "total_ns", "share", "calls")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_FIELD_NUMBER: _ClassVar[int]
    FLOPS_PER_S_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    shapes: str
    precision: str
    intensity: float
    flops_per_s: float
    total_ns: float
    share: float
    calls: int
    def __init__(self, name: _Optional[str] = ..., shapes: _Optional[str] = ..., precision: _Optional[str] = ..., intensity: _Optional[float] = ..., flops_per_s: _Optional[float] = ..., total_ns: _Optional[float] = ..., share: _Optional[float] = ..., calls: _Optional[int] = ...) -> None: ...

class StepColumns(_message.Message):
    __slots__ = ("begin_ns", "end_ns", "steps", "regimes")
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    REGIMES_FIELD_NUMBER: _ClassVar[int]
    begin_ns: _containers.RepeatedScalarFieldContainer[float]
    end_ns: _containers.RepeatedScalarFieldContainer[float]
    steps: _containers.RepeatedScalarFieldContainer[int]
    regimes: _containers.RepeatedCompositeFieldContainer[RegimeColumn]
    def __init__(self, begin_ns: _Optional[_Iterable[float]] = ..., end_ns: _Optional[_Iterable[float]] = ..., steps: _Optional[_Iterable[int]] = ..., regimes: _Optional[_Iterable[_Union[RegimeColumn, _Mapping]]] = ...) -> None: ...

class RegimeColumn(_message.Message):
    __slots__ = ("regime", "title", "ns")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    NS_FIELD_NUMBER: _ClassVar[int]
    regime: str
    title: str
    ns: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, regime: _Optional[str] = ..., title: _Optional[str] = ..., ns: _Optional[_Iterable[float]] = ...) -> None: ...

class TreeAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "problem", "tree", "other")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    problem: str
    tree: Tree
    other: Tree
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., problem: _Optional[str] = ..., tree: _Optional[_Union[Tree, _Mapping]] = ..., other: _Optional[_Union[Tree, _Mapping]] = ...) -> None: ...

class Tree(_message.Message):
    __slots__ = ("by", "window_ns", "steps", "steps_recorded", "parent", "kinds", "kind", "name", "regimes", "device_ns", "host_ns", "wait_ns", "backward_ns", "moved_bytes", "flops", "allocated_bytes", "calls", "begin_ns", "end_ns", "device", "devices", "notes", "nodes_left_out")
    BY_FIELD_NUMBER: _ClassVar[int]
    WINDOW_NS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    STEPS_RECORDED_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REGIMES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NS_FIELD_NUMBER: _ClassVar[int]
    HOST_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_NS_FIELD_NUMBER: _ClassVar[int]
    BACKWARD_NS_FIELD_NUMBER: _ClassVar[int]
    MOVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLOPS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    NODES_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    by: str
    window_ns: float
    steps: int
    steps_recorded: int
    parent: _containers.RepeatedScalarFieldContainer[int]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    kind: _containers.RepeatedScalarFieldContainer[int]
    name: _containers.RepeatedScalarFieldContainer[str]
    regimes: _containers.RepeatedCompositeFieldContainer[RegimeColumn]
    device_ns: _containers.RepeatedScalarFieldContainer[float]
    host_ns: _containers.RepeatedScalarFieldContainer[float]
    wait_ns: _containers.RepeatedScalarFieldContainer[float]
    backward_ns: _containers.RepeatedScalarFieldContainer[float]
    moved_bytes: _containers.RepeatedScalarFieldContainer[float]
    flops: _containers.RepeatedScalarFieldContainer[float]
    allocated_bytes: _containers.RepeatedScalarFieldContainer[float]
    calls: _containers.RepeatedScalarFieldContainer[int]
    begin_ns: _containers.RepeatedScalarFieldContainer[float]
    end_ns: _containers.RepeatedScalarFieldContainer[float]
    device: int
    devices: _containers.RepeatedCompositeFieldContainer[TreeDevice]
    notes: _containers.RepeatedScalarFieldContainer[str]
    nodes_left_out: int
    def __init__(self, by: _Optional[str] = ..., window_ns: _Optional[float] = ..., steps: _Optional[int] = ..., steps_recorded: _Optional[int] = ..., parent: _Optional[_Iterable[int]] = ..., kinds: _Optional[_Iterable[str]] = ..., kind: _Optional[_Iterable[int]] = ..., name: _Optional[_Iterable[str]] = ..., regimes: _Optional[_Iterable[_Union[RegimeColumn, _Mapping]]] = ..., device_ns: _Optional[_Iterable[float]] = ..., host_ns: _Optional[_Iterable[float]] = ..., wait_ns: _Optional[_Iterable[float]] = ..., backward_ns: _Optional[_Iterable[float]] = ..., moved_bytes: _Optional[_Iterable[float]] = ..., flops: _Optional[_Iterable[float]] = ..., allocated_bytes: _Optional[_Iterable[float]] = ..., calls: _Optional[_Iterable[int]] = ..., begin_ns: _Optional[_Iterable[float]] = ..., end_ns: _Optional[_Iterable[float]] = ..., device: _Optional[int] = ..., devices: _Optional[_Iterable[_Union[TreeDevice, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ..., nodes_left_out: _Optional[int] = ...) -> None: ...

class TreeDevice(_message.Message):
    __slots__ = ("index", "name", "total_ns")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    index: int
    name: str
    total_ns: float
    def __init__(self, index: _Optional[int] = ..., name: _Optional[str] = ..., total_ns: _Optional[float] = ...) -> None: ...
