"""Recorded trees of real machines through every command, and what ``lspci`` and ``lstopo`` say of them.

The recordings are not part of the project: where they do not lie beside it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import ROOT
from programs import program
from sample import swept
from seam import Run, run

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.source.directory import DirectorySource
from dgxcheck.survey import survey
from dgxcheck.topology.paths import numa_node

RECORDINGS = ROOT.parent / "shared" / "recordings"
ARCHIVES = {
    path.name.partition(".")[0]: path
    for kind in ("sysfs-raw", "sysfs-trees")
    for path in sorted((RECORDINGS / kind).glob("*.tar.*"))
}
NO_PCI = "holds /sys/class/infiniband alone"
WITHOUT_LSPCI = {
    "gpud-sys-class-infiniband-h100": NO_PCI,
    "node_exporter-sys-class-infiniband": NO_PCI,
    "procfs-sys-class-infiniband": NO_PCI,
    "hwloc-nvidiagpunumanodes": "its functions have neither ids nor config, and are no links",
}
WITHOUT_LSTOPO = {
    **WITHOUT_LSPCI,
    "hwloc-nvidiagpunumanodes": "its functions have no numa_node",
    "checkbox-dgx-station": "holds no numa_node and no NUMA nodes",
    "hwloc-40intel64-2g2n4c+pcilocality": "numa_node is -1 on every GPU, NIC, disk and bridge of a four-node machine",
}
CPU_STUB = ("mpibind-coral-lassen", "mpibind-cts1-pascal", "mpibind-g4dnmetal")
"""Trees of PCI and NUMA nodes alone: lstopo wants CPUs, which are made from the recorded CPU lists."""
CLASSES = {
    "checkbox-dgx-station": ({"PIX": 2, "PHB": 4}, {}),
    "mpibind-cts1-pascal": ({"PIX": 1}, {"PIX": 2}),
    "mpibind-g4dnmetal": ({"PHB": 4, "NODE": 8, "SOC": 16}, {"NODE": 4, "SOC": 4}),
    "mpibind-coral-lassen": ({"PIX": 2, "SOC": 4}, {"NODE": 8, "SOC": 8}),
}
PORTS = {"network.firmware", "network.port-rate", "network.port-state"}
JUDGED = {
    "checkbox-dgx-station": {"consistency.unique", "driver.bound", "pcie.uniform"},
    "gpud-sys-class-infiniband-h100": PORTS | {"network.uniform"},
    "hwloc-2pa-pcidomain32bits": {"consistency.place", "consistency.host", "consistency.unique", "host.cpu-clock"},
    "hwloc-32em64t-2n8c+dax+nvme+mic+dimms": PORTS
    | {
        "consistency.place",
        "consistency.host",
        "consistency.unique",
        "driver.bound",
        "host.cpu-clock",
        "host.governor",
        "host.numa",
        "host.uniform",
        "network.hca-identity",
        "pcie.answers",
        "pcie.uniform",
        "topology.numa",
    },
    "hwloc-32intel64-2p8co2t+8ve": {
        "consistency.place",
        "consistency.host",
        "consistency.unique",
        "driver.bound",
        "host.command-line",
        "host.cpu-clock",
        "host.numa",
        "host.uniform",
        "pcie.path",
        "pcie.uniform",
    },
    "hwloc-40intel64-2g2n4c+pcilocality": {
        "consistency.place",
        "consistency.host",
        "consistency.unique",
        "host.cpu-clock",
        "host.numa",
        "host.uniform",
        "network.hca-identity",
        "network.port-rate",
        "network.port-state",
        "pcie.answers",
        "pcie.uniform",
        "topology.numa",
    },
    "hwloc-nvidiagpunumanodes": {"consistency.host", "host.command-line", "host.numa", "host.uniform"},
    "mpibind-coral-lassen": {
        "consistency.place",
        "consistency.host",
        "consistency.unique",
        "host.numa",
        "network.hca-identity",
        "network.port-state",
        "network.uniform",
        "pcie.answers",
        "pcie.switches",
        "pcie.uniform",
        "topology.numa",
    },
    "mpibind-cts1-pascal": {
        "consistency.unique",
        "consistency.place",
        "consistency.host",
        "gdr.path",
        "host.numa",
        "network.hca-identity",
        "network.port-state",
        "pcie.answers",
        "pcie.uniform",
        "topology.numa",
    },
    "mpibind-g4dnmetal": {
        "consistency.unique",
        "consistency.place",
        "consistency.host",
        "host.numa",
        "network.port-state",
        "pcie.answers",
        "pcie.uniform",
        "topology.numa",
    },
    "node_exporter-sys-class-infiniband": PORTS,
    "procfs-sys-class-infiniband": PORTS,
}
"""What passes in a tree: all that files alone can show."""
WARNED = {
    "procfs-sys-class-infiniband": [("network.port-rate", "warn")],  # InfiniBand on one lane of four
    "checkbox-dgx-station": [("driver.library", "unknown")],  # GPUs bound to nvidia, and no answers of NVML
}
UNNEEDED = re.compile(
    r"/system/memory/|/node\d+/memory\d|/power(/|$)|/proc/self/|/usb\d|/msi_irqs/|/dma/|/firmware/|/cpuset/|/cpuidle/"
    r"|/statistics/|/queues/|/scsi_host/|/microcode/|/thermal_throttle/|/hugepages/|/tty/"
)

pytestmark = pytest.mark.skipif(not ARCHIVES, reason=f"no recordings in {RECORDINGS}")
every_tree = pytest.mark.parametrize("tree", ARCHIVES)
some_trees = pytest.mark.parametrize("tree", swept(ARCHIVES, 4))
Unpack = Callable[[str], Path]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """The root of a tree, unpacked when it is first asked for."""
    roots: dict[str, Path] = {}

    def root(tree: str) -> Path:
        if tree not in roots:
            roots[tree] = _unpack(ARCHIVES[tree], tmp_path_factory.mktemp("tree"))
        return roots[tree]

    return root


def _unpack(archive: Path, folder: Path) -> Path:
    """Directories, links and contents, without the modes of sysfs, which keep a user from deleting them."""
    made: set[str] = set()
    with tarfile.open(archive) as tar:
        for member in tar:
            if UNNEEDED.search(member.name):
                continue
            at = os.path.join(folder, _placed(member.name))
            above = at if member.isdir() else os.path.dirname(at)
            if above not in made:
                os.makedirs(above, exist_ok=True)
                made.add(above)
            if member.issym():
                os.symlink(member.linkname, at)
            elif member.isreg() and (content := tar.extractfile(member)):
                with open(at, "wb") as file:
                    file.write(content.read())
    return next(path for path in (folder, *folder.iterdir()) if (path / "sys").is_dir())


def _placed(name: str) -> str:
    """An InfiniBand class directory without the way to it is put where it belongs."""
    return re.sub(r"^sys-class-infiniband[^/]*", "sys/class/infiniband", name)


def test_the_lists_of_exceptions_name_trees_that_are_there() -> None:
    assert {*WITHOUT_LSPCI, *WITHOUT_LSTOPO, *CPU_STUB, *CLASSES} <= {*ARCHIVES}


@pytest.mark.in_ci
@some_trees
def test_every_command_takes_every_tree_and_its_recording_says_the_same(
    tree: str, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, box = str(unpacked(tree)), str(tmp_path / "box.json")
    done = run(capsys, "record", box, "--from", root)
    assert (done.code, done.out) == (0, "")
    assert re.fullmatch(r"\S+: \d+ facts recorded\n", done.err)
    for argv in (("topo", "-m"), ("topo", "-mp"), ("topo", "--tree"), ("topo", "--rings"), ("topo", "--format", "json"),
                 ("topo", "--format", "nvidia-smi"), ("list",), ("list", "--format", "json"),
                 ("health", "-q")):  # fmt: skip
        live, replayed = (run(capsys, *argv, "--from", where) for where in (root, box))
        assert live.code in ((0, 1, 3) if argv[0] == "health" else (0, 3))
        assert live.out
        assert live.err == "" or ("nvidia-smi" in argv and live.err.startswith("dgxcheck: NVLink is unknown"))
        assert _without_source(replayed) == _without_source(live)
    again = str(tmp_path / "again.json")
    assert run(capsys, "record", again, "--from", box).code == 0


@pytest.mark.in_ci
@every_tree
def test_health_finds_no_fault_in_any_tree(tree: str, unpacked: Unpack, capsys: pytest.CaptureFixture[str]) -> None:
    """They are files alone: what only the driver can tell is skipped for a reason, and nothing passes for it."""
    done = run(capsys, "health", "-q", "--format", "json", "--from", str(unpacked(tree)))
    findings = json.loads(done.out)["findings"]
    bad = {(each["id"], each["status"]) for each in findings if each["status"] in ("warn", "fail", "unknown")}
    assert bad <= {("gpu.count", "unknown"), *WARNED.get(tree, ())}  # trees without a GPU
    passed = {each["id"] for each in findings if each["status"] == "pass"}
    of_the_driver = {each for each in passed if each.startswith(("ecc", "clock", "power", "thermal", "nvlink", "p2p"))}
    assert of_the_driver == set()
    assert all(each["reason"] and each["message"] for each in findings if each["status"] == "skip")
    assert passed == JUDGED.get(tree, set())


def _without_source(done: Run) -> Run:
    """A command's answer without where the facts come from."""
    if not done.out.startswith("{"):
        return done._replace(out="".join(line for line in done.out.splitlines(True) if not line.startswith("Source: ")))
    document = json.loads(done.out)
    del document["source"]
    return done._replace(out=json.dumps(document))


@pytest.mark.parametrize("tree", CLASSES)
def test_classes_agree_with_what_is_known_of_the_machine(
    tree: str, unpacked: Unpack, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(run(capsys, "topo", "--format", "json", "--from", str(unpacked(tree))).out)
    kinds = {device["name"]: device["kind"] for device in found["devices"]}
    pairs = Counter((kinds[link["a"]], kinds[link["b"]], link["pci"]) for link in found["links"])
    gpus, nics = CLASSES[tree]
    assert {label: count for (a, b, label), count in pairs.items() if (a, b) == ("gpu", "gpu")} == gpus
    assert {label: count for (a, b, label), count in pairs.items() if (a, b) == ("gpu", "nic")} == nics


def _functions(root: Path) -> dict[str, PciFunction]:
    found = survey(DirectorySource(str(root)), ("pci",)).pci
    assert not isinstance(found, Missing)
    return {function.bdf: function for function in found}


@every_tree
def test_parents_agree_with_lspci(tree: str, unpacked: Unpack) -> None:
    if tree in WITHOUT_LSPCI:
        pytest.skip(WITHOUT_LSPCI[tree])
    root = unpacked(tree)
    argv = [program("lspci"), "-O", f"sysfs.path={root}/sys/bus/pci", "-D", "-n", "-PP"]
    listing = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    chains = {chain[-1]: chain for chain in map(_chain, listing.stdout.splitlines())}
    listed = {*os.listdir(root / "sys/bus/pci/devices")}
    assert {*chains} == listed
    compared = 0
    for bdf, function in _functions(root).items():
        assert not isinstance(function.path, Missing), bdf
        if bdf in listed:
            # a trimmed tree may lack the directory of a bridge that its links go through
            assert [hop for hop in function.path[1:] if hop in listed] == chains[bdf]
            compared += 1
    assert compared > 3


def _chain(line: str) -> list[str]:
    """``0000:5d:02.0/5e:00.0/60:00.1 0200: ..`` -> the bus ids from the root port down, each with its domain."""
    first, *below = line.split(" ")[0].split("/")
    domain = first.rsplit(":", 2)[0]
    return [first, *(f"{domain}:{bdf}" for bdf in below)]


@every_tree
def test_numa_nodes_agree_with_lstopo(tree: str, unpacked: Unpack, tmp_path: Path) -> None:
    if tree in WITHOUT_LSTOPO:
        pytest.skip(WITHOUT_LSTOPO[tree])
    root = unpacked(tree)
    lstopo = program("lstopo-no-graphics")
    if tree in CPU_STUB:
        root = _unpack(ARCHIVES[tree], tmp_path)
        _add_cpus(root)
    env = os.environ | {
        "HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "linux,stop", "HWLOC_DUMPED_HWDATA_DIR": "/var/run/hwloc"
    }  # fmt: skip
    argv = [lstopo, "--of", "xml", "--whole-io"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60, env=env)
    nodes: dict[str, str] = {}
    _locate(ElementTree.fromstring(shown.stdout), "", nodes)
    box = survey(DirectorySource(str(root)), ("pci", "numa"))
    assert not isinstance(box.pci, Missing)
    compared = 0
    for function in box.pci:
        node = numa_node(function, box.numa)
        # hwloc 2.9 shows no domain beyond four digits; where we know no node, it takes the host bridge's
        if len(function.bdf) > 12 or isinstance(node, Missing):
            continue
        assert nodes.get(function.bdf) == f"0x{1 << node:08x}", function.bdf
        compared += 1
    assert compared >= 3


def _locate(element: ElementTree.Element, nodeset: str, nodes: dict[str, str]) -> None:
    for below in element.findall("object"):
        mine = below.get("nodeset") or nodeset
        if (bdf := below.get("pci_busid")) is not None:
            nodes[bdf] = mine
        _locate(below, mine, nodes)


def _add_cpus(root: Path) -> None:
    """CPUs and masks that say what the recorded CPU lists of nodes and functions say."""
    system = root / "sys/devices/system"
    for node in system.glob("node/node*"):
        cpus = _cpus((node / "cpulist").read_text())
        (node / "cpumap").write_text(_mask(cpus))
        for cpu in cpus:
            topology = system / f"cpu/cpu{cpu}/topology"
            topology.mkdir(parents=True)
            for name in ("core_cpus", "thread_siblings"):
                (topology / name).write_text(_mask([cpu]))
            for name in ("package_cpus", "core_siblings"):
                (topology / name).write_text(_mask(cpus))
            (topology / "core_id").write_text(f"{cpu}\n")
            (topology / "physical_package_id").write_text(f"{node.name[4:]}\n")
    for listed in root.glob("sys/devices/pci*/**/local_cpulist"):
        listed.with_name("local_cpus").write_text(_mask(_cpus(listed.read_text())))


def _cpus(text: str) -> list[int]:
    ends = ([int(end) for end in part.split("-")] for part in text.strip().split(","))
    return [cpu for each in ends for cpu in range(each[0], each[-1] + 1)]


def _mask(cpus: list[int]) -> str:
    """``00000003,ffffffff``: words of 32 bits, the last CPUs first."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(bits.bit_length(), 1), 32)]
    return ",".join(reversed(words)) + "\n"
