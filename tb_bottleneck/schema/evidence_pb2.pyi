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
    __slots__ = ("window_ns", "steps", "kernels", "kernels_left_out", "operators", "operators_left_out", "syncs", "copies", "roofline", "step_account")
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
    def __init__(self, window_ns: _Optional[float] = ..., steps: _Optional[int] = ..., kernels: _Optional[_Iterable[_Union[KernelRow, _Mapping]]] = ..., kernels_left_out: _Optional[_Union[LeftOut, _Mapping]] = ..., operators: _Optional[_Iterable[_Union[OperatorRow, _Mapping]]] = ..., operators_left_out: _Optional[_Union[LeftOut, _Mapping]] = ..., syncs: _Optional[_Iterable[_Union[SyncRow, _Mapping]]] = ..., copies: _Optional[_Iterable[_Union[CopyRow, _Mapping]]] = ..., roofline: _Optional[_Union[Roofline, _Mapping]] = ..., step_account: _Optional[_Union[StepColumns, _Mapping]] = ...) -> None: ...

class LeftOut(_message.Message):
    __slots__ = ("rows", "total_ns")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    total_ns: float
    def __init__(self, rows: _Optional[int] = ..., total_ns: _Optional[float] = ...) -> None: ...

class KernelRow(_message.Message):
    __slots__ = ("name", "regime", "calls", "total_ns", "share", "mean_ns", "reached", "roof", "precision", "unit", "begin_ns", "end_ns")
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
    def __init__(self, name: _Optional[str] = ..., regime: _Optional[str] = ..., calls: _Optional[int] = ..., total_ns: _Optional[float] = ..., share: _Optional[float] = ..., mean_ns: _Optional[float] = ..., reached: _Optional[float] = ..., roof: _Optional[str] = ..., precision: _Optional[str] = ..., unit: _Optional[str] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

class OperatorRow(_message.Message):
    __slots__ = ("name", "calls", "host_ns", "device_ns", "share", "reached", "roof", "begin_ns", "end_ns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    HOST_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    ROOF_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    name: str
    calls: int
    host_ns: float
    device_ns: float
    share: float
    reached: float
    roof: str
    begin_ns: float
    end_ns: float
    def __init__(self, name: _Optional[str] = ..., calls: _Optional[int] = ..., host_ns: _Optional[float] = ..., device_ns: _Optional[float] = ..., share: _Optional[float] = ..., reached: _Optional[float] = ..., roof: _Optional[str] = ..., begin_ns: _Optional[float] = ..., end_ns: _Optional[float] = ...) -> None: ...

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
