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
    __slots__ = ("by", "window_ns", "steps", "steps_recorded", "parent", "kinds", "kind", "name", "regimes", "device_ns", "host_ns", "wait_ns", "backward_ns", "moved_bytes", "flops", "allocated_bytes", "calls", "begin_ns", "end_ns", "device", "devices", "notes", "nodes_left_out", "bounded_ns", "ideal_ns")
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
    BOUNDED_NS_FIELD_NUMBER: _ClassVar[int]
    IDEAL_NS_FIELD_NUMBER: _ClassVar[int]
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
    bounded_ns: _containers.RepeatedScalarFieldContainer[float]
    ideal_ns: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, by: _Optional[str] = ..., window_ns: _Optional[float] = ..., steps: _Optional[int] = ..., steps_recorded: _Optional[int] = ..., parent: _Optional[_Iterable[int]] = ..., kinds: _Optional[_Iterable[str]] = ..., kind: _Optional[_Iterable[int]] = ..., name: _Optional[_Iterable[str]] = ..., regimes: _Optional[_Iterable[_Union[RegimeColumn, _Mapping]]] = ..., device_ns: _Optional[_Iterable[float]] = ..., host_ns: _Optional[_Iterable[float]] = ..., wait_ns: _Optional[_Iterable[float]] = ..., backward_ns: _Optional[_Iterable[float]] = ..., moved_bytes: _Optional[_Iterable[float]] = ..., flops: _Optional[_Iterable[float]] = ..., allocated_bytes: _Optional[_Iterable[float]] = ..., calls: _Optional[_Iterable[int]] = ..., begin_ns: _Optional[_Iterable[float]] = ..., end_ns: _Optional[_Iterable[float]] = ..., device: _Optional[int] = ..., devices: _Optional[_Iterable[_Union[TreeDevice, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ..., nodes_left_out: _Optional[int] = ..., bounded_ns: _Optional[_Iterable[float]] = ..., ideal_ns: _Optional[_Iterable[float]] = ...) -> None: ...

class TreeDevice(_message.Message):
    __slots__ = ("index", "name", "total_ns")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    index: int
    name: str
    total_ns: float
    def __init__(self, index: _Optional[int] = ..., name: _Optional[str] = ..., total_ns: _Optional[float] = ...) -> None: ...
