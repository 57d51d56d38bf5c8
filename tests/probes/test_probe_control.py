"""Control words of PCI functions; lspci on the recorded dumps of pciutils is the oracle."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from test_probe_config_space import image

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Control
from probes.pci.config_space import control

DUMPS = sorted((ROOT.parent / "shared/recordings/sysfs-raw").glob("pciutils-*.gz"))
EXPRESS = 0x68


def words(**changed: int) -> bytes:
    """The image with a capability of version 2, and words at offsets (``at_28``) or in the header (``command``)."""
    config = image()
    for name, value in changed.items():
        at = 0x04 if name == "command" else EXPRESS + int(name.removeprefix("at_"), 16)
        config[at : at + 2] = value.to_bytes(2, "little")
    return bytes(config)


def known(config: bytes) -> Control:
    found = control(config, "/config")
    assert isinstance(found, Control)
    return found


def test_command() -> None:
    both = known(words(command=0x0406))
    neither = known(words(command=0x0400))
    assert (both.memory_space, both.bus_master) == (True, True)
    assert (neither.memory_space, neither.bus_master) == (False, False)


def test_device_and_link_control() -> None:
    on = known(words(at_08=0x0910, at_10=0x0012, at_28=0x1076, at_30=0x0003))
    assert (on.relaxed_ordering, on.extended_tag, on.no_snoop, on.aspm, on.link_disabled) == (True, True, True, 2, True)
    assert (on.completion_timeout, on.completion_timeout_disabled, on.ari_forwarding) == (6, True, True)
    assert (on.atomics, on.ten_bit_tag, on.target_gen) == (True, True, 3)
    off = known(words(at_08=0, at_10=0, at_28=0, at_30=0))
    assert (off.relaxed_ordering, off.aspm, off.link_disabled, off.atomics) == (False, 0, False, False)
    assert isinstance(off.target_gen, Missing)


def test_version_1_has_no_second_words() -> None:
    config = image()
    config[EXPRESS + 2] = 0x61
    found = known(bytes(config))
    assert isinstance(found.target_gen, Missing)
    assert found.target_gen.gap is Gap.UNSUPPORTED
    assert found.relaxed_ordering is False


def test_conventional_pci() -> None:
    config = image()
    config[0x06] = 0
    found = known(bytes(config))
    assert isinstance(found.aspm, Missing)
    assert found.aspm.gap is Gap.ABSENT


@given(st.binary(max_size=4096))
def test_any_bytes(config: bytes) -> None:
    assert isinstance(control(config, "/config"), Control | Missing)


@pytest.mark.skipif(shutil.which("lspci") is None, reason="lspci is not installed")
@pytest.mark.skipif(not DUMPS, reason="the recordings are not here")
@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_lspci_agrees(dump: Path, tmp_path: Path) -> None:
    text = gzip.decompress(dump.read_bytes()).decode()
    plain = tmp_path / "dump"
    plain.write_text(text)
    rows = re.findall(r"^[0-9a-f]+: ((?:[0-9a-f]{2} ?)+)$", text, re.M)
    config = bytes.fromhex("".join(rows))
    if len(config) not in (256, 4096):
        pytest.skip("more than one function")
    shown = subprocess.run(["lspci", "-F", plain, "-vvv"], capture_output=True, text=True, check=True).stdout
    found = known(config)
    signs = {"Mem": found.memory_space, "BusMaster": found.bus_master, "RlxdOrd": found.relaxed_ordering,
             "ExtTag": found.extended_tag, "NoSnoop": found.no_snoop}  # fmt: skip
    for name, value in signs.items():
        if isinstance(value, bool) and (seen := re.findall(rf"\b{name}([+-])", shown)):
            assert seen[-1 if name == "ExtTag" else 0] == ("+" if value else "-"), name
    if isinstance(found.target_gen, int) and (target := re.search(r"Target Link Speed: ([0-9.]+)GT/s", shown)):
        assert {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5}[target[1]] == found.target_gen
