from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunContext(_message.Message):
    __slots__ = ("schema", "facts", "unsupported", "notes")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    UNSUPPORTED_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    schema: int
    facts: _struct_pb2.Struct
    unsupported: _containers.RepeatedCompositeFieldContainer[Unsupported]
    notes: _containers.RepeatedCompositeFieldContainer[Note]
    def __init__(self, schema: _Optional[int] = ..., facts: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., unsupported: _Optional[_Iterable[_Union[Unsupported, _Mapping]]] = ..., notes: _Optional[_Iterable[_Union[Note, _Mapping]]] = ...) -> None: ...

class Unsupported(_message.Message):
    __slots__ = ("name", "because")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    name: str
    because: str
    def __init__(self, name: _Optional[str] = ..., because: _Optional[str] = ...) -> None: ...

class Note(_message.Message):
    __slots__ = ("unix_ns", "code", "detail")
    UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    unix_ns: float
    code: str
    detail: str
    def __init__(self, unix_ns: _Optional[float] = ..., code: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class Packet(_message.Message):
    __slots__ = ("schema", "sequence", "series", "steps", "notes")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    schema: int
    sequence: int
    series: _containers.RepeatedCompositeFieldContainer[Series]
    steps: StepRows
    notes: _containers.RepeatedCompositeFieldContainer[Note]
    def __init__(self, schema: _Optional[int] = ..., sequence: _Optional[int] = ..., series: _Optional[_Iterable[_Union[Series, _Mapping]]] = ..., steps: _Optional[_Union[StepRows, _Mapping]] = ..., notes: _Optional[_Iterable[_Union[Note, _Mapping]]] = ...) -> None: ...

class Series(_message.Message):
    __slots__ = ("name", "device", "unix_ns", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    device: str
    unix_ns: _containers.RepeatedScalarFieldContainer[float]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., device: _Optional[str] = ..., unix_ns: _Optional[_Iterable[float]] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class StepRows(_message.Message):
    __slots__ = ("number", "end_unix_ns", "wall_ns", "columns", "steps")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    END_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    number: _containers.RepeatedScalarFieldContainer[int]
    end_unix_ns: _containers.RepeatedScalarFieldContainer[float]
    wall_ns: _containers.RepeatedScalarFieldContainer[float]
    columns: _containers.RepeatedCompositeFieldContainer[StepColumn]
    steps: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, number: _Optional[_Iterable[int]] = ..., end_unix_ns: _Optional[_Iterable[float]] = ..., wall_ns: _Optional[_Iterable[float]] = ..., columns: _Optional[_Iterable[_Union[StepColumn, _Mapping]]] = ..., steps: _Optional[_Iterable[int]] = ...) -> None: ...

class StepColumn(_message.Message):
    __slots__ = ("name", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class TelemetryAnswer(_message.Message):
    __slots__ = ("id", "live", "context", "series", "steps", "bands", "notes", "lost_packets", "dropped", "devices")
    ID_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    BANDS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    LOST_PACKETS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    id: str
    live: bool
    context: RunContext
    series: _containers.RepeatedCompositeFieldContainer[Series]
    steps: StepRows
    bands: _containers.RepeatedCompositeFieldContainer[Band]
    notes: _containers.RepeatedCompositeFieldContainer[Note]
    lost_packets: int
    dropped: _containers.RepeatedCompositeFieldContainer[Dropped]
    devices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., live: bool = ..., context: _Optional[_Union[RunContext, _Mapping]] = ..., series: _Optional[_Iterable[_Union[Series, _Mapping]]] = ..., steps: _Optional[_Union[StepRows, _Mapping]] = ..., bands: _Optional[_Iterable[_Union[Band, _Mapping]]] = ..., notes: _Optional[_Iterable[_Union[Note, _Mapping]]] = ..., lost_packets: _Optional[int] = ..., dropped: _Optional[_Iterable[_Union[Dropped, _Mapping]]] = ..., devices: _Optional[_Iterable[str]] = ...) -> None: ...

class Dropped(_message.Message):
    __slots__ = ("reason", "count")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    count: int
    def __init__(self, reason: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class Band(_message.Message):
    __slots__ = ("begin_unix_ns", "end_unix_ns", "regime", "share", "severity", "title")
    BEGIN_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    END_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    begin_unix_ns: float
    end_unix_ns: float
    regime: str
    share: float
    severity: str
    title: str
    def __init__(self, begin_unix_ns: _Optional[float] = ..., end_unix_ns: _Optional[float] = ..., regime: _Optional[str] = ..., share: _Optional[float] = ..., severity: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...
