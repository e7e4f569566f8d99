"""JSON lines decoded into typed records, many lines at a time where they are regular."""

from __future__ import annotations

import io
import re
import types
import typing
from collections.abc import Container, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, BinaryIO, Generic, TypeAlias, TypeVar

import msgspec

from clew.io.records import TOO_LONG, RawRecord, read_chunks, read_line
from clew.model.json import JSON

T = TypeVar("T", bound=msgspec.Struct)
TokenCount = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of tokens. Any other number in a record is left out like a value of another type."""
OptionalText: TypeAlias = str | None | msgspec.UnsetType
"""The type of a field with a text, with `null`, or absent."""
_BLANK_START = re.compile(rb"\n[ \t\r\n]").search
"""Finds a line that is blank or begins with a space. To msgspec a line feed is white space like any other, so a blank
line and two records on one line would make up for each other."""
_NOT_TYPED = (msgspec.MsgspecError, RecursionError, UnicodeError)


class RecordDecoder(Generic[T]):
    """Decodes the lines of one JSONL file into structs of one type.

    A line that does not fit the type keeps the fields that do. A piece of a line that is no JSON object comes as the
    `RawRecord` that says what is wrong with it.
    """

    def __init__(self, record_type: type[T]) -> None:
        self.record_type = record_type
        required = [field.name for field in _fields(record_type) if field.required]
        if required:
            raise TypeError(f"{record_type.__name__}: any record may lack any key, so {required[0]!r} needs a default")
        decoder = msgspec.json.Decoder(record_type)
        self._decode, self._decode_lines = decoder.decode, decoder.decode_lines

    def decode_file(self, stream: BinaryIO) -> Iterator[tuple[int, T | RawRecord]]:
        """The records of a file, each with the number of its line, beginning with 1."""
        line, is_inside_long_line = 1, False
        for chunk, is_whole in read_chunks(stream):
            if not is_whole:
                # Of a line that is too long, the first piece stands for all.
                if not is_inside_long_line:
                    yield line, RawRecord(line, 0, b"", b"", None, None, (TOO_LONG,))
                is_inside_long_line = not chunk.endswith(b"\n")
                line += not is_inside_long_line
                continue
            is_inside_long_line = False
            line_count = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
            try:
                records = self._decode_lines(chunk) if chunk[:1] == b"{" and not _BLANK_START(chunk) else []
            except _NOT_TYPED:
                records = []
            if len(records) == line_count:
                yield from zip(range(line, line + line_count), records, strict=True)
                line += line_count
                continue
            for text in io.BytesIO(chunk):
                for record in self.decode_line(text):
                    yield line, record
                line += text.endswith(b"\n")

    def decode_line(self, text: bytes) -> Iterator[T | RawRecord]:
        """The records of one line: nearly always one."""
        try:
            yield self._decode(text)
            return
        except _NOT_TYPED:
            pass
        for record in read_line(text, 0, 0):
            yield record if record.value is None else decode_leniently(record.value, self.record_type)


def decode_leniently(value: Mapping[str, JSON], record_type: type[T]) -> T:
    """A struct from those fields of an odd record that have the expected types."""
    found: dict[str, Any] = {}
    for field in _fields(record_type):
        if field.encode_name not in value:
            continue
        item = value[field.encode_name]
        inner = _struct_in(field.type)
        try:
            if isinstance(item, dict) and inner is not None:
                found[field.name] = decode_leniently(item, inner)
                continue
            found[field.name] = msgspec.convert(item, field.type)
        except (msgspec.ValidationError, TypeError):
            # Of another type, or an object that lacks what it must have.
            continue
    return record_type(**found)


def unknown_keys(
    value: Mapping[str, JSON], record_type: type[msgspec.Struct], known: Container[str] = ()
) -> Iterator[str]:
    """The keys of a record that are neither fields of the struct nor among the known keys that it leaves out."""
    fields = _key_names(record_type)
    return (key for key in value if key not in fields and key not in known)


class NoFields(msgspec.Struct):
    """For objects whose keys are not decoded."""


def unknown_in(
    name: str, value: JSON, record_type: type[msgspec.Struct] = NoFields, known: Container[str] = ()
) -> Iterator[str]:
    """The unknown keys of an object, or of the objects in a list, each as `name.key`."""
    for item in value if type(value) is list else (value,):
        if type(item) is dict:
            yield from (f"{name}.{key}" for key in unknown_keys(item, record_type, known))


class KeysByType:
    """The known keys of objects whose `type` says which keys they have, such as the blocks of a message.

    `keys` has the keys of each type in one text, `common` those of all.
    """

    def __init__(self, keys: Mapping[str, str], common: str = "type", type_key: str = "type") -> None:
        self._known = {name: frozenset((*common.split(), *names.split())) for name, names in keys.items()}
        self._type_key = type_key

    def __contains__(self, type_name: JSON) -> bool:
        return type(type_name) is str and type_name in self._known

    def unknown_in(self, value: JSON) -> Iterator[str]:
        """The unknown keys of an object, or of the objects in a list, each as `type.key`; none of unknown types."""
        for item in value if type(value) is list else (value,):
            name = item.get(self._type_key) if type(item) is dict else None
            if type(name) is str and name in self._known:
                yield from unknown_in(name, item, known=self._known[name])


@cache
def _key_names(record_type: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in _fields(record_type))


@cache
def _fields(record_type: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(record_type)


@cache
def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct that an annotation allows, if it does."""
    is_union = isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union
    kinds = typing.get_args(annotation) if is_union else (annotation,)
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct)), None)


def decode_each(items: JSON, record_type: type[T]) -> list[T]:
    """Structs from the elements of a list of objects, each with the fields that fit; none from any other value."""
    if type(items) is not list or any(type(item) is not dict for item in items):
        return []
    return [decode_value(item, record_type) for item in items]


def decode_value(value: Mapping[str, JSON], record_type: type[T]) -> T:
    """A struct from an object that is already parsed; one that does not fit the type keeps the fields that do."""
    try:
        return msgspec.convert(value, record_type)
    except (msgspec.ValidationError, RecursionError):
        return decode_leniently(value, record_type)
