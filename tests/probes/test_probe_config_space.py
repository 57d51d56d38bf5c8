"""Capability lists, whole and broken; lspci on the recorded dumps of pciutils is the oracle."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT
from fake_source import PCI, FakeSource, function
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Acs, Express, PortType
from probes.pci.config_space import acs, config_space, express

DUMPS = sorted((ROOT.parent / "shared/recordings/sysfs-raw").glob("pciutils-*.gz"))
PORT_NAMES = {
    "Endpoint": PortType.ENDPOINT,
    "Root Port": PortType.ROOT_PORT,
    "Upstream Port": PortType.UPSTREAM_PORT,
    "Downstream Port": PortType.DOWNSTREAM_PORT,
}


def image(size: int = 4096, acs_next: int = 0) -> bytearray:
    """A downstream port: Express at 0x68 behind power management at 0x40, ACS at 0x148 behind AER at 0x100."""
    config = bytearray(size)
    config[0:4] = bytes.fromhex("b5106487")
    config[0x06] = 0x10
    config[0x34] = 0x40
    config[0x40:0x42] = bytes((0x01, 0x68))
    config[0x68:0x74] = bytes.fromhex("10006200 01800000 20500000".replace(" ", ""))
    if size > 256:
        config[0x100:0x104] = (0x0001 | 1 << 16 | 0x148 << 20).to_bytes(4, "little")
        config[0x148:0x150] = (0x000D | 1 << 16 | acs_next << 20).to_bytes(4, "little") + bytes.fromhex("5f001d00")
    return config


def test_express_and_acs() -> None:
    config = bytes(image())
    assert express(config, "") == Express(
        port_type=PortType.DOWNSTREAM_PORT, max_payload_supported=256, max_payload=256, max_read_request=4096
    )
    assert acs(config, "") == Acs(capability=0x5F, control=0x1D)


def test_without_acs() -> None:
    config = image()
    config[0x148:0x14A] = b"\x19\x00"
    assert acs(bytes(config), "") is None
    got = acs(bytes(image(256)), "/config")
    assert isinstance(got, Missing)
    assert got.gap is Gap.UNSUPPORTED


def test_a_conventional_function() -> None:
    config = image(256)
    config[0x06] = 0
    assert acs(bytes(config), "") is None
    got = express(bytes(config), "/config")
    assert isinstance(got, Missing)
    assert got.gap is Gap.ABSENT


def test_reserved_sizes_and_types_are_garbled() -> None:
    config = image()
    config[0x6A], config[0x6C], config[0x71] = 0xF2, 0x07, 0x70
    got = express(bytes(config), "/config")
    assert isinstance(got, Express)
    assert isinstance(got.port_type, Missing)
    assert isinstance(got.max_payload_supported, Missing)
    assert isinstance(got.max_read_request, Missing)
    assert got.max_payload == 256


@pytest.mark.parametrize(("at", "following"), [(0x41, 0x40), (0x41, 0x20), (0x40, 0xFF)])
def test_a_broken_list_that_never_came_to_express_is_garbled(at: int, following: int) -> None:
    config = image()
    config[at] = following
    for got in (express(bytes(config), "/config"), acs(bytes(config), "/config")):
        assert isinstance(got, Missing)
        assert got.gap is Gap.GARBLED


@pytest.mark.parametrize("header", [0x0001 | 0x100 << 20, 0x0001 | 0xFFC << 20 | 1 << 16, 0xFFFFFFFF])
def test_a_broken_extended_list_is_garbled_only_if_acs_was_not_found_before(header: int) -> None:
    config = image()
    config[0xFFC:0x1000] = b"\xff" * 4
    config[0x100:0x104] = header.to_bytes(4, "little")
    got = acs(bytes(config), "/config")
    assert isinstance(got, Missing)
    assert got.gap is Gap.GARBLED
    assert isinstance(acs(bytes(image(acs_next=0x148)), "/config"), Acs)


@given(st.one_of(st.binary(max_size=300), st.binary(min_size=256, max_size=600)), st.booleans())
def test_any_bytes_end_and_give_a_value_or_a_gap(config: bytes, listed: bool) -> None:
    if listed and len(config) > 64:
        config = config[:6] + b"\x10" + config[7:0x34] + b"\x40" + config[0x35:]
    assert isinstance(express(config, "/c"), (Express, Missing))
    assert isinstance(acs(config, "/c"), (Acs, Missing, type(None)))


@given(st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), max_size=40))
def test_damaged_bytes_end_too(damage: list[tuple[int, int]]) -> None:
    config = image()
    for at, byte in damage:
        config[at] = byte
    assert isinstance(express(bytes(config), "/c"), (Express, Missing))
    assert isinstance(acs(bytes(config), "/c"), (Acs, Missing, type(None)))


def gpu(**files: str | bytes | Missing) -> FakeSource:
    return FakeSource(function("0000:06:00.0", class_="0x030200", vendor="0x10de", **files))


def probed(box: FakeSource) -> Express | Missing:
    got = config_space(box)
    assert not isinstance(got, Missing)
    return got[0].express


@pytest.mark.parametrize("state", ["D3hot\n", "D3cold\n"])
def test_a_sleeping_device_is_left_asleep(state: str) -> None:
    box = gpu(power_state=state, config=bytes(image()))
    got = probed(box)
    assert isinstance(got, Missing)
    assert got.gap is Gap.UNASKED
    assert f"file {PCI}/0000:06:00.0/config" not in box.asked


def test_without_root_64_bytes_are_readable() -> None:
    got = probed(gpu(power_state="D0\n", config=bytes(image())[:64]))
    detail = "only 64 bytes readable; all of it needs CAP_SYS_ADMIN"
    assert got == Missing(Gap.DENIED, f"{PCI}/0000:06:00.0/config", detail)


def test_a_lost_device_reads_all_ones() -> None:
    got = probed(gpu(config=b"\xff" * 64))
    assert isinstance(got, Missing)
    assert got.gap is Gap.LOST


def test_a_torn_read_is_garbled() -> None:
    got = probed(gpu(config=b"\xde\x10"))
    assert isinstance(got, Missing)
    assert got.gap is Gap.GARBLED


def test_bridges_on_the_path_are_asked_too() -> None:
    files = function("0000:06:00.0", class_="0x030200", vendor="0x10de")
    files |= function("0000:03:00.0", class_="0x060400", config=bytes(image()))
    box = FakeSource(files, {f"{PCI}/0000:06:00.0": "../../../devices/pci0000:00/0000:03:00.0/0000:06:00.0"})
    got = config_space(box)
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == ["0000:06:00.0", "0000:03:00.0"]
    assert isinstance(got[1].acs, Acs)


def functions_of(dump: str) -> dict[str, bytes]:
    """Config space from the hex rows of each function."""
    found: dict[str, bytearray] = {}
    at = ""
    for line in dump.splitlines():
        if head := re.match(r"([0-9a-f:]+\.[0-7]) \S", line):
            at = head[1]
            found[at] = bytearray()
        elif row := re.fullmatch(r"[0-9a-f]{2,3}:((?: [0-9a-f]{2}){16})\s*", line):
            found[at] += bytes.fromhex(row[1])
    return {bdf: bytes(config) for bdf, config in found.items()}


@pytest.mark.skipif(not DUMPS, reason="no recordings beside the repository")
@pytest.mark.skipif(shutil.which("lspci") is None, reason="lspci is not installed")
@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.name)
def test_lspci_reads_the_same(dump: Path, tmp_path: Path) -> None:
    text = gzip.decompress(dump.read_bytes()).decode()
    (tmp_path / "dump").write_text(text)
    said = subprocess.run(
        ["lspci", "-F", str(tmp_path / "dump"), "-vvv"], capture_output=True, text=True, check=True
    ).stdout
    blocks = {block.split(" ", 1)[0]: block for block in said.split("\n\n") if block.strip()}
    seen = 0
    for bdf, config in functions_of(text).items():
        block = blocks[bdf]
        payloads = [int(number) for number in re.findall(r"MaxPayload (\d+) bytes", block)]
        request = re.search(r"MaxReadReq (\d+) bytes", block)
        kind = re.search(r"Express \(v\d\) ([A-Z][a-z]+(?: [A-Z][a-z]+)?)", block)
        if payloads and request and kind:
            seen += 1
            assert express(config, "") == Express(
                port_type=PORT_NAMES[kind[1]],
                max_payload_supported=payloads[0],
                max_payload=payloads[1],
                max_read_request=int(request[1]),
            )
        else:
            assert isinstance(express(config, ""), Missing)
        words = [sum(1 << bit for bit, mark in enumerate(re.findall(r"[+-]", row)) if mark == "+")
                 for row in re.findall(r"ACS(?:Cap|Ctl):(.*)", block)]  # fmt: skip
        got = acs(config, "")
        if words:
            assert isinstance(got, Acs)
            assert [got.capability & 0x7F, got.control & 0x7F] == words
        else:
            assert got is None or (isinstance(got, Missing) and len(config) == 256)
    assert seen
