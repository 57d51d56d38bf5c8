"""The file probes over the recorded trees of real machines, where those lie beside the repository."""

from __future__ import annotations

import os
import re
import tarfile
from pathlib import Path

import pytest
from checkout import ROOT
from test_probe_anything import PROBES

from dgxcheck.facts.infiniband import IbPort, PhysState, PortState
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.source.directory import DirectorySource
from probes.host.host import network, storage
from probes.host.memory import numa
from probes.infiniband import ib_ports, infiniband
from probes.pci.functions import pci

RECORDINGS = ROOT.parent / "shared/recordings"
TREES = sorted(path for kind in ("sysfs-raw", "sysfs-trees") for path in (RECORDINGS / kind).glob("*.tar.*"))
UNNEEDED = re.compile(
    r"/sys/devices/system/cpu/|/node/node\d+/(cpu|memory)\d|/system/memory/|/power(/|$)|/proc/self/|/usb\d|/msi_irqs/"
    r"|/dma/|/firmware/|/cpuset/|/pci_bus/|/statistics/|/queues/|/scsi_host/"
)

pytestmark = pytest.mark.skipif(not TREES, reason="no recordings beside the repository")


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DirectorySource]:
    """Every recorded tree, unpacked, by the name of its archive."""
    sources = {}
    for archive in TREES:
        root = tmp_path_factory.mktemp("tree")
        _unpack(archive, root)
        sources[archive.name.partition(".")[0]] = DirectorySource(str(_root_of(root)))
    return sources


def _unpack(archive: Path, root: Path) -> None:
    """Directories, links and contents in one pass, without the modes of sysfs, which keep a user from deleting them."""
    made: set[str] = set()
    with tarfile.open(archive) as tar:
        for member in tar:
            at = os.path.join(root, member.name)
            above = at if member.isdir() else os.path.dirname(at)
            if UNNEEDED.search(member.name):
                continue
            if above not in made:
                os.makedirs(above, exist_ok=True)
                made.add(above)
            if member.issym():
                os.symlink(member.linkname, at)
            elif member.isreg() and (content := tar.extractfile(member)):
                with open(at, "wb") as file:
                    file.write(content.read())


def _root_of(unpacked: Path) -> Path:
    found = next((path for path in (unpacked, *unpacked.iterdir()) if (path / "sys").is_dir()), None)
    if found:
        return found
    # gpud's is a copy of /sys/class/infiniband itself
    (unpacked / "sys/class").mkdir(parents=True)
    copied = next(path for path in unpacked.iterdir() if path.name != "sys")
    return copied.rename(unpacked / "sys/class/infiniband").parents[2]


def tree(trees: dict[str, DirectorySource], name: str) -> DirectorySource:
    return next(source for key, source in trees.items() if name in key)


def functions(source: DirectorySource) -> dict[str, PciFunction]:
    got = pci(source)
    assert not isinstance(got, Missing)
    return {each.bdf: each for each in got}


def ports(source: DirectorySource) -> dict[str, IbPort]:
    got = ib_ports(source)
    assert not isinstance(got, Missing)
    return {
        f"{each.device}/{port.port}": port for each in got if not isinstance(each.ports, Missing) for port in each.ports
    }


@pytest.mark.in_ci
def test_every_probe_gets_through_every_tree(trees: dict[str, DirectorySource]) -> None:
    assert len(trees) == len(TREES)
    for source in trees.values():
        for probe in PROBES:
            assert probe(source) is not None


def test_dgx_station(trees: dict[str, DirectorySource]) -> None:
    found = functions(tree(trees, "checkbox-dgx-station"))
    gpus = {bdf: each for bdf, each in found.items() if (each.vendor, each.class_code) == (0x10DE, 0x030000)}
    assert list(gpus) == ["0000:07:00.0", "0000:08:00.0", "0000:0e:00.0", "0000:0f:00.0"]
    assert {each.device for each in gpus.values()} == {0x1DB2}
    switches = []
    for each in gpus.values():
        assert not isinstance(each.path, Missing)
        assert each.path[0] == "pci0000:00"
        assert set(each.path[1:]) <= set(found)
        switches.append(each.path[2])
    assert switches == ["0000:05:00.0"] * 2 + ["0000:0c:00.0"] * 2
    assert "0000:07:00.1" not in found


def test_supermicro_with_eight_vector_engines(trees: dict[str, DirectorySource]) -> None:
    found = functions(tree(trees, "32intel64-2p8co2t+8ve"))
    engines = [each for each in found.values() if each.class_code == 0x0B4000]
    assert len(engines) == 8
    assert {(each.link_gen, each.link_width) for each in engines} <= {(3, 16), (1, 16)}
    # 28 are listed; the recording lacks one bridge that a path goes through
    assert isinstance(found["0000:5f:03.0"].class_code, Missing)
    assert len(found) == 28 + 1


def test_domains_of_five_digits(trees: dict[str, DirectorySource]) -> None:
    found = functions(tree(trees, "pcidomain32bits"))
    assert found["10000:00:04.0"].path == ("pci10000:00", "10000:00:04.0")


def test_a_tree_of_directories_instead_of_links(trees: dict[str, DirectorySource]) -> None:
    found = functions(tree(trees, "nvidiagpunumanodes"))
    assert len(found) == 6
    assert all(isinstance(each.path, Missing) and isinstance(each.vendor, Missing) for each in found.values())
    nodes = numa(tree(trees, "nvidiagpunumanodes"))
    assert not isinstance(nodes, Missing)
    assert [each.node for each in nodes][-6:] == [250, 251, 252, 253, 254, 255]


def test_infiniband_device_that_is_not_pci(trees: dict[str, DirectorySource]) -> None:
    source = tree(trees, "dax+nvme")
    got = infiniband(source)
    assert not isinstance(got, Missing)
    assert [(each.name, isinstance(each.bdf, Missing)) for each in got] == [("mlx4_0", False), ("scif0", True)]
    port = ports(source)["mlx4_0/1"]
    assert (port.state, port.phys_state) == (PortState.ACTIVE, PhysState.LINK_UP)
    disks = storage(source).disks
    assert not isinstance(disks, Missing)
    assert {"nvme0n1", "sda"} <= {each.name for each in disks}
    assert not {"nvme0n1p1", "sda1", "loop0", "ram0"} & {each.name for each in disks}
    interfaces = network(source)
    assert not isinstance(interfaces, Missing)
    assert {"eth0", "ib0", "lo"} <= {each.name for each in interfaces}


def test_h100_ports(trees: dict[str, DirectorySource]) -> None:
    found = ports(tree(trees, "gpud"))
    assert len(found) == 9
    counters = found["mlx5_1/1"].counters
    assert not isinstance(counters, Missing)
    assert (counters["link_downed"], counters["port_rcv_errors"]) == (255, 14)
    assert [port.rate.gbit_per_s for port in found.values() if not isinstance(port.rate, Missing)] == [400] * 8 + [200]


def test_counters_without_performance_agent(trees: dict[str, DirectorySource]) -> None:
    counters = ports(tree(trees, "node_exporter"))["i40iw0/1"].counters
    assert not isinstance(counters, Missing)
    assert counters
    assert all(isinstance(count, Missing) for count in counters.values())


def test_contradicting_states_are_garbled(trees: dict[str, DirectorySource]) -> None:
    found = ports(tree(trees, "procfs"))
    assert any(port.state is PortState.ACTIVE and isinstance(port.phys_state, Missing) for port in found.values())
