"""PCIe error counters in both spellings, root port totals, and files that are not there."""

from __future__ import annotations

from fake_source import PCI, FakeSource, function
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import AerErrors, RootPortErrors
from probes.pci.config_space import aer, errors

NEW = "RxErr 2\nBadTLP 0\nBadDLLP 1\nTimeout 0\nTOTAL_ERR_COR 3\n"
OLD = "Receiver Error 2\nBad TLP 0\nBad DLLP 1\nReplay Timer Timeout 0\nTOTAL_ERR_COR 3\n"


def test_both_spellings_mean_the_same() -> None:
    expected = AerErrors(counts={"RxErr": 2, "BadTLP": 0, "BadDLLP": 1, "Timeout": 0}, total=3)
    assert errors(NEW, "") == errors(OLD, "") == expected


def test_the_total_is_kept_apart_and_may_be_missing_or_differ() -> None:
    got = errors("RxErr 2\nTOTAL_ERR_COR 9\n", "")
    assert isinstance(got, AerErrors)
    assert (got.counts, got.total) == ({"RxErr": 2}, 9)
    got = errors("RxErr 2\n", "/cor")
    assert isinstance(got, AerErrors)
    assert isinstance(got.total, Missing)


@given(st.dictionaries(st.sampled_from(("RxErr", "A new name", "Bad TLP")), st.integers(0, 2**64 - 1), min_size=1))
def test_counters_read_back(counts: dict[str, int]) -> None:
    got = errors("".join(f"{name} {count}\n" for name, count in counts.items()), "")
    assert isinstance(got, AerErrors)
    assert sorted(got.counts.values()) == sorted(counts.values())


def test_garbled_lines() -> None:
    for text in ("RxErr\n", "RxErr x\n", "RxErr -1\n", " 5\n", "TOTAL_ERR_COR 0\n"):
        got = errors(text, "/cor")
        assert isinstance(got, Missing)
        assert got.gap is Gap.GARBLED


def test_a_gpu_its_bridges_and_the_root_port() -> None:
    files = function("0000:06:00.0", class_="0x030200", vendor="0x10de", aer_dev_correctable=NEW)
    files |= function("0000:03:00.0", class_="0x060400", aer_dev_fatal=Missing(Gap.LOST, "f"))
    files |= function(
        "0000:00:02.0", class_="0x060400", aer_rootport_total_err_cor="5\n", aer_rootport_total_err_fatal="x"
    )
    files |= function("0000:00:03.0", class_="0x060400", aer_dev_correctable=NEW)
    links = {f"{PCI}/0000:06:00.0": "../../../devices/pci0000:00/0000:00:02.0/0000:03:00.0/0000:06:00.0"}
    got = aer(FakeSource(files, links))
    assert not isinstance(got, Missing)
    assert [each.bdf for each in got] == ["0000:06:00.0", "0000:00:02.0", "0000:03:00.0"]
    gpu, root_port, switch = got
    assert isinstance(gpu.correctable, AerErrors)
    assert isinstance(gpu.nonfatal, Missing)
    assert gpu.nonfatal.gap is Gap.ABSENT
    assert gpu.root_port is None
    assert switch.root_port is None
    assert switch.fatal == Missing(Gap.LOST, "f")
    assert isinstance(root_port.root_port, RootPortErrors)
    assert root_port.root_port.correctable == 5
    assert isinstance(root_port.root_port.nonfatal, Missing)
    assert isinstance(root_port.root_port.fatal, Missing)
