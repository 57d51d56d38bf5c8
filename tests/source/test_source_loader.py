"""The loader takes data within its limits and refuses everything else in one line."""

from __future__ import annotations

import gzip
import json
import os
import time
import zlib
from pathlib import Path

import pytest
from clock import SPARE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.limits import RECORDING_BYTES
from dgxcheck.source.recording.load import OVERLAY, SCHEMA, load, recording

SOME = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
GOOD = json.dumps({"schema": SCHEMA, "facts": {"/a": {"text": {"b": "c"}}}})


def put(folder: Path, raw: bytes | str) -> str:
    path = folder / "box.json"
    path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
    return str(path)


def refusal(folder: Path, raw: bytes | str) -> str:
    """The line with which a file is refused."""
    path = put(folder, raw)
    with pytest.raises(BadInput) as refused:
        recording(load(path), path)
    line = str(refused.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    assert len(line) < len(path) + 300
    return line[len(path) + 2 :]


def with_schema(members: str) -> str:
    return f'{{"schema": "{SCHEMA}", {members}}}'


BOMB = b"[" * 100_000
CUT = GOOD[:-5]
WRONG: dict[str, tuple[bytes | str, str]] = {
    "empty": ("", "empty"),
    "blank": (" \n\t", "empty"),
    "a list": ("[]", "not a JSON object with a schema"),
    "no schema": ("{}", "not a recording"),
    "a later schema": ('{"schema": "dgxcheck/recording/2"}', "unknown schema 'dgxcheck/recording/2'"),
    "a schema of another kind": ('{"schema": {"a": []}}', "unknown schema (missing or not a string)"),
    "a huge schema": (f'{{"schema": "{"x" * 100_000}"}}', "unknown schema"),
    "no facts": (f'{{"schema": "{SCHEMA}"}}', "no 'facts'"),
    "facts of another kind": (with_schema('"facts": []'), "no 'facts'"),
    "a line of another kind": (with_schema('"facts": {"/a": 1}'), "'/a' is not an object"),
    "a line with more": (with_schema('"facts": {"/a": {"size": {}}}'), "'/a' has members other than text"),
    "later of another kind": (with_schema('"facts": {}, "later": 3'), "'later' is not a list"),
    "later without time": (with_schema('"facts": {}, "later": [{"facts": {}}]'), "'later' is not a list"),
    "later at once": (with_schema('"facts": {}, "later": [{"at_s": 0, "facts": {}}]'), "'later' is not a list"),
    "later as truth": (with_schema('"facts": {}, "later": [{"at_s": true, "facts": {}}]'), "'later' is not a list"),
    "truncated": (GOOD[:-5], "incomplete or damaged recording"),
    "two documents": (GOOD + GOOD, "incomplete or damaged recording"),
    "deep lists": (BOMB, "nested too deeply"),
    "deep objects": (b'{"a":' * 100_000, "nested too deeply"),
    "deep facts": (with_schema(f'"facts": {"[" * 100_000}{"]" * 100_000}'), "nested too deeply"),
    "a key twice": (with_schema('"facts": {}, "facts": {}'), "duplicate key 'facts'"),
    "a key twice inside": (with_schema('"facts": {"/a": {"text": {"b": "1", "b": "2"}}}'), "duplicate key 'b'"),
    "a huge key twice": (f'{{"{"k" * 9999}": 1, "{"k" * 9999}": 1}}', "duplicate key"),
    "NaN": (with_schema('"facts": {"nvml F": {"": NaN}}'), "NaN is not a valid JSON number"),
    "Infinity": (with_schema('"facts": {"nvml F": {"": Infinity}}'), "Infinity is not a valid JSON number"),
    "-Infinity": (with_schema('"facts": {"nvml F": {"": -Infinity}}'), "-Infinity is not a valid JSON number"),
    "1e999": (with_schema('"facts": {"nvml F": {"": 1e999}}'), "1e999 is too large"),
    "5000 digits": (with_schema(f'"facts": {{"nvml F": {{"": {"9" * 5000}}}}}'), "number with 5000 digits"),
    "a long fraction": (with_schema(f'"facts": {{"nvml F": {{"": {"9" * 5000}.5}}}}'), "is too large"),
    "half a pair": (with_schema('"facts": {"nvml F": {"": "\\ud800"}}'), "unpaired surrogate"),
    "half a pair as key": (with_schema('"facts": {"\\uDFFF": {}}'), "unpaired surrogate"),
    "half a pair in bytes": (with_schema('"facts": {"nvml F": {"": "X"}}').encode().replace(b"X", b"\xed\xa0\x80"),
                             "not UTF-8"),
    "latin 1": (b'{"schema": "\xe4"}', "not UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "not UTF-8"),
    "binary": (b"\x7fELF\0\0", "not a recording"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "gzip cut": (gzip.compress(GOOD.encode())[:-12], "gzip data is truncated"),
    "gzip broken": (gzip.compress(GOOD.encode())[:10] + b"\xff" * 40, "not a valid gzip file"),
    "gzip head alone": (b"\x1f\x8b", "gzip data is truncated"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    raw, due = WRONG[case]
    assert due in refusal(tmp_path, raw)


def test_the_last_of_many_members_twice_is_found_at_once(tmp_path: Path) -> None:
    members = ", ".join(f'"{n}": 1' for n in (*range(200_000), 199_999))
    started = time.monotonic()
    assert "duplicate key '199999'" in refusal(tmp_path, f"{{{members}}}")
    assert time.monotonic() - started < 5 + SPARE


def test_one_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    started = time.monotonic()
    with pytest.raises(BadInput, match="larger than 16 MiB"):
        load(str(path))
    assert time.monotonic() - started < 1 + SPARE


def test_a_compression_bomb_is_refused_within_its_limit(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, wbits=31)
    chunk = bytes(1 << 20)
    bomb = b"".join(packer.compress(chunk) for _ in range((RECORDING_BYTES >> 20) + 64)) + packer.flush()
    assert len(bomb) < 1 << 18
    assert "decompresses to more than 16 MiB" in refusal(tmp_path, bomb)


@pytest.mark.parametrize(("name", "mark"), [("box.json", "utf-8"), ("box.json.gz", "utf-8"), ("box.json", "utf-8-sig")])
def test_gzip_is_told_by_its_bytes(tmp_path: Path, name: str, mark: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(GOOD.encode(mark)))
    assert load(str(tmp_path / name)) == json.loads(GOOD)


def test_pairs_of_surrogates_are_text(tmp_path: Path) -> None:
    path = put(tmp_path, with_schema('"facts": {"nvml F": {"": "\\ud83d\\ude00 \\\\ud800"}}'))
    assert recording(load(path), path).lines == {"nvml F": {"": "\U0001f600 \\ud800"}}


def test_numbers_within_the_limits_are_numbers(tmp_path: Path) -> None:
    path = put(tmp_path, with_schema(f'"facts": {{"nvml F": {{"": [{2**64}, -1, 1e300, {"9" * 40}]}}}}'))
    assert recording(load(path), path).lines["nvml F"][""] == [2**64, -1, 1e300, int("9" * 40)]


def test_what_is_no_file_is_refused_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nothing")
    for name, due in (("fifo", "not a regular file"), ("dangling", "cannot be read: No such file")):
        with pytest.raises(BadInput, match=due):
            load(str(tmp_path / name))


@given(st.one_of(st.binary(), st.binary().map(lambda raw: b"\x1f\x8b\x08" + raw), st.binary().map(gzip.compress)))
@SOME
def test_random_bytes_raise_nothing_else(tmp_path: Path, raw: bytes) -> None:
    refusal(tmp_path, raw)


def refused_or_read(path: str) -> str:
    """The line of the refusal, else ``read``; any other exception fails the test."""
    try:
        recording(load(path), path)
    except BadInput as refused:
        return str(refused)
    return "read"


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
@SOME
def test_a_changed_byte_raises_nothing_else(tmp_path: Path, at: int, byte: int) -> None:
    raw = bytearray(GOOD.encode())
    raw[at] = byte
    path = put(tmp_path, bytes(raw))
    assert refused_or_read(path).startswith((path, "read"))


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON: st.SearchStrategy[Json] = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)


@given(st.sampled_from([SCHEMA, OVERLAY]), JSON, JSON, st.dictionaries(st.text(max_size=5), JSON, max_size=2))
@SOME
def test_random_members_raise_nothing_else(
    tmp_path: Path, schema: str, facts: Json, later: Json, more: dict[str, Json]
) -> None:
    path = put(tmp_path, json.dumps(more | {"schema": schema, "facts": facts, "later": later}))
    assert refused_or_read(path).startswith((path, "read"))
