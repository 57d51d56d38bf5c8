"""Access Control Services in configuration spaces written here: what lspci and setpci read in the same bytes is right.

One way they differ, and on purpose: a pointer below 0x100 ends the list here and in the kernel
(``pci_find_next_ext_capability``, Linux drivers/pci/pci.c), while lspci walks on into the header.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tarfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from checkout import ROOT
from fake_source import PCI, FakeSource, function
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program
from test_health_checks import box

from dgxcheck.checks.pcie.isolation import REDIRECT, disable_acs
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Acs
from dgxcheck.source.recording.load import open_source
from probes.pci.config_space import config_space

ACS, AER, SERIAL, ARI, LTR, VENDOR = 0x000D, 0x0001, 0x0003, 0x000E, 0x0018, 0xBEEF
CAPABILITY = 0x005F
CONTROL = 0x001D
RECORDINGS = ROOT.parent / "shared/recordings"
Chain = Sequence[tuple[int, int]]
"""Extended capabilities as offset and id, each pointing to the next."""


def space(chain: Chain = (), control: int = CONTROL, last: int = 0, size: int = 4096, express: bool = True) -> bytes:
    """A switch port: power management at 0x40, Express at 0x68, ACS where the chain has it first."""
    config = bytearray(4096)
    config[0x00:0x10] = bytes.fromhex("b510478707041000ca00040600000100")
    config[0x34] = 0x40
    config[0x40:0x42] = bytes((0x01, 0x68 if express else 0x00))
    config[0x68:0x74] = bytes.fromhex("100062010180000030200000")
    for (at, kind), (following, _) in pairwise([*chain, (last, 0)]):
        config[at : at + 4] = (kind | 1 << 16 | following << 20).to_bytes(4, "little")
    place = next((at for at, kind in chain if kind == ACS), 0xFFC)
    if place < 0xFFC:
        config[place + 4 : place + 8] = CAPABILITY.to_bytes(2, "little") + control.to_bytes(2, "little")
    return bytes(config[:size])


def reserved(config: bytes) -> bytes:
    """With the two lowest bits of the first pointer set."""
    return config[:0x102] + bytes((config[0x102] | 0x30,)) + config[0x103:]


def every_header() -> Chain:
    """As many capabilities as there is room for, back to front, ACS the last of them."""
    return [(0x100, SERIAL), *((at, VENDOR) for at in range(0xFFC, 0x108, -4)), (0x104, ACS)]


ON = Acs(capability=CAPABILITY, control=CONTROL)
BEFORE: Chain = [(0x100, AER), (0x148, SERIAL)]
SPACES: dict[str, tuple[bytes, Acs | Gap | None]] = {
    "first": (space([(0x100, ACS)]), ON),
    "after others": (space([*BEFORE, (0x200, ACS)]), ON),
    "in the middle": (space([*BEFORE, (0x200, ACS), (0x300, LTR)]), ON),
    "before what precedes it in the list": (space([(0x100, AER), (0x800, ARI), (0x140, ACS)]), ON),
    "at the last place that holds it": (space([*BEFORE, (0xFF8, ACS)]), ON),
    "twice, of which the first counts": (space([(0x100, ACS), (0x200, LTR), (0x300, ACS)]), ON),
    "after as many as there is room for": (space(every_header()), ON),
    "in a list that loops behind it": (space([*BEFORE, (0x200, ACS)], last=0x148), ON),
    "cut off by the end": (space([*BEFORE, (0xFFC, ACS)]), Gap.GARBLED),
    "absent": (space([*BEFORE, (0x200, LTR)]), None),
    "no extended capability": (space(), None),
    "a null capability alone": (space([(0x100, 0)]), None),
    "not Express": (space([(0x100, ACS)], express=False), None),
    "a list that loops": (space([*BEFORE, (0x200, LTR)], last=0x148), Gap.GARBLED),
    "a list of one that loops": (space([(0x100, AER)], last=0x100), Gap.GARBLED),
    "a pointer to all ones": (space(BEFORE, last=0x200)[:0x200] + b"\xff" * 0xE00, Gap.GARBLED),
    "a pointer to zeros": (space(BEFORE, last=0x200), None),
    "a pointer below 0x100": (space(BEFORE, last=0x80), None),
    "a pointer with the reserved bits set": (reserved(space([*BEFORE, (0x200, ACS)])), ON),
    "all ones": (b"\xff" * 4096, Gap.LOST),
    "all ones of 64 bytes": (b"\xff" * 64, Gap.LOST),
    "zeros": (bytes(4096), None),
    "64 bytes": (space([(0x100, ACS)], size=64), Gap.DENIED),
    "128 bytes": (space([(0x100, ACS)], size=128), Gap.DENIED),
    "256 bytes": (space([(0x100, ACS)], size=256), Gap.UNSUPPORTED),
    **{
        f"control {control:#06x}": (
            space([*BEFORE, (0x200, ACS)], control),
            Acs(capability=CAPABILITY, control=control),
        )
        for control in (0, *(1 << bit for bit in range(7)), 0x1C, 0x1D, 0x3C, 0x5F, 0x7F)
    },
}
"""A configuration space, and what dgxcheck says of its ACS."""


def bdf_of(number: int) -> str:
    return f"0000:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"


def dump(spaces: Sequence[bytes]) -> str:
    """As ``lspci -xxxx`` prints them."""
    rows = (
        f"{bdf_of(number)} x\n"
        + "".join(f"{at:02x}: {config[at : at + 16].hex(' ')}\n" for at in range(0, len(config), 16))
        for number, config in enumerate(spaces)
    )
    return "\n".join(rows)


def lspci(spaces: Sequence[bytes], folder: Path) -> list[str]:
    """What ``lspci -vvv`` prints of each, from one dump."""
    file = folder / "dump"
    file.write_text(dump(spaces))
    done = subprocess.run([program("lspci"), "-F", file, "-Dnvvv"], capture_output=True, text=True, check=True)
    blocks = {block.split(" ", 1)[0]: block for block in done.stdout.split("\n\n") if block.strip()}
    return [blocks[bdf_of(number)] for number in range(len(spaces))]


def told(block: str) -> tuple[int, int] | None:
    """The words of the first ACS that lspci shows of the list that begins at 0x100."""
    extended = re.split(r"\n\tCapabilities: \[([0-9a-f]{3}) v\d+\] ", block)
    for at, text in zip(extended[1::2], extended[2::2], strict=True):
        if int(at, 16) < 0x100:
            return None
        if text.startswith("Access Control Services"):
            words = [
                sum(1 << bit for bit, mark in enumerate(re.findall(r"[+-]", row)) if mark == "+")
                for row in re.findall(r"ACS(?:Cap|Ctl):(.*)", text)
            ]
            return (words[0], words[1]) if words else None
    return None


def read(spaces: Sequence[bytes]) -> list[Acs | Missing | None]:
    """What dgxcheck reads, through its probe."""
    files: dict[str, str | bytes | Missing] = {}
    for number, config in enumerate(spaces):
        files |= function(bdf_of(number), class_="0x030200", vendor="0x10de", config=config)
    found = config_space(FakeSource(files))
    assert not isinstance(found, Missing)
    by_bdf = {each.bdf: each.acs for each in found}
    return [by_bdf[bdf_of(number)] for number in range(len(spaces))]


def words(said: Acs | Missing | None) -> tuple[int, int] | None:
    return (said.capability & 0x7F, said.control & 0x7F) if isinstance(said, Acs) else None


@pytest.mark.parametrize("name", SPACES)
def test_what_is_read(name: str) -> None:
    config, due = SPACES[name]
    (got,) = read([config])
    assert (got.gap if isinstance(got, Missing) else got) == due


def test_lspci_reads_the_same(tmp_path: Path) -> None:
    spaces = [config for config, _ in SPACES.values()]
    printed = lspci(spaces, tmp_path)
    assert dict(zip(SPACES, map(told, printed), strict=True)) == dict(
        zip(SPACES, map(words, read(spaces)), strict=True)
    )
    shown = dict(zip(SPACES, printed, strict=True))
    assert {name for name, block in shown.items() if "<access denied>" in block} == {"64 bytes"}
    assert {name for name, block in shown.items() if "<chain looped>" in block} == {
        "a list that loops", "a list of one that loops", "in a list that loops behind it",
    }  # fmt: skip


def test_a_conventional_capability_is_never_taken_for_acs(tmp_path: Path) -> None:
    """Bridge Subsystem Vendor ID has number 0x0d too; lspci, sent there by a pointer below 0x100, calls it ACS."""
    config = bytearray(space(BEFORE, last=0x80))
    config[0x80:0x88] = bytes.fromhex("0d000000b5104787")
    (block,) = lspci([bytes(config)], tmp_path)
    assert "[080 v0] Access Control Services" in block
    assert told(block) is None
    assert read([bytes(config)]) == [None]


KINDS = st.sampled_from((ACS, ACS, AER, SERIAL, ARI, LTR, VENDOR, 0))
OFFSETS = st.integers(0x100 >> 2, 0xFFC >> 2).map(lambda word: word << 2)


@st.composite
def random_spaces(draw: st.DrawFn) -> bytes:
    """Lists in any order, that end, loop, lead into the header or into other bytes, some cut short."""
    places = draw(st.lists(OFFSETS, unique=True, max_size=8))
    chain = [(at, draw(KINDS)) for at in (0x100, *(at for at in places if at != 0x100))]
    config = bytearray(
        space(chain, draw(st.integers(0, 0xFFFF)), draw(st.sampled_from((0, *places)) | st.integers(0, 0xFFF)))
    )
    for at, byte in draw(st.lists(st.tuples(st.integers(0x100, 0xFFF), st.integers(0, 255)), max_size=6)):
        config[at] = byte
    return bytes(config[: draw(st.sampled_from((64, 128, 256, 4096, 4096, 4096, 4096)))])


@settings(max_examples=12, deadline=None, derandomize=True)  # lspci loses a list that leads into itself at the end
@given(st.lists(random_spaces(), min_size=1, max_size=30))
def test_random_lists_end_and_are_read_as_lspci_reads_them(
    tmp_path_factory: pytest.TempPathFactory, spaces: list[bytes]
) -> None:
    printed = lspci(spaces, tmp_path_factory.mktemp("lists"))
    assert [words(got) for got in read(spaces)] == [told(block) for block in printed]


def recorded_headers() -> list[bytes]:
    """Configuration space in the recorded trees of machines: what an ordinary user could read."""
    found = []
    for path in sorted(RECORDINGS.glob("sysfs-*/*.tar.*")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith("/config"):
                    file = archive.extractfile(member)
                    found.append(file.read() if file is not None else b"")
    return found


@pytest.mark.in_ci
@pytest.mark.skipif(not RECORDINGS.exists(), reason="no recordings beside the repository")
def test_of_the_recorded_machines_nobody_can_tell(tmp_path: Path) -> None:
    """Their trees hold 64 bytes of each function: neither lspci nor dgxcheck may say that there is no ACS."""
    headers = recorded_headers()
    assert len(headers) > 400
    assert {len(each) for each in headers} == {64}
    gaps = {said.gap if isinstance(said, Missing) else said for said in read(headers)}
    assert gaps == {Gap.DENIED}
    listed = [block for header, block in zip(headers, lspci(headers, tmp_path), strict=True) if header[6] & 0x10]
    assert listed
    assert all("Capabilities: <access denied>" in block for block in listed)


PORT = "0000:09:08.0"


@pytest.mark.parametrize("spec", ["dgx-1-v100-acs-redirect", "k80-x8-p2p-acs"])
def test_the_command_that_lifts_it_clears_the_redirect_bits_alone(spec: str, tmp_path: Path) -> None:
    """The command of the remedy as it stands, given to setpci with the port's own bytes, in demonstration mode."""
    config = open_source(spec).data(f"{PCI}/{PORT}/config")
    assert isinstance(config, bytes)
    (before,) = read([config])
    assert isinstance(before, Acs)
    command = re.search(r"setpci (-s \S+ ECAP_ACS\S+);", disable_acs(box(spec), PORT))
    assert command is not None
    (tmp_path / "dump").write_text(dump([config]).replace(bdf_of(0), PORT))
    argv = [program("setpci"), "-vD", "-A", "dump", "-O", f"dump.name={tmp_path / 'dump'}", *shlex.split(command[1])]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert f"->{before.control & ~REDIRECT:04x}" in done.stdout
    assert before.control & REDIRECT
