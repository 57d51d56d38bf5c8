"""``lspci`` of every form: ids, tree, links and regions as the files of sysfs."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest
from lspci_texts import LSPCI
from programs import lacking, program
from readers_text import one, unread
from seam import run

from dgxcheck.readers.derived import completed
from dgxcheck.readers.lspci import text as pasted
from dgxcheck.readers.lspci.files import files
from dgxcheck.readers.lspci.listing import Function, functions, merged, of_leaf, of_words, tree
from dgxcheck.readers.lspci.registers import extended, link, resource, secondary_bus

SAMPLES = next(
    (up / "shared/recordings/sysfs-raw" for up in Path(__file__).parents if (up / "shared/recordings").is_dir()),
    Path("none"),
)
D = "/sys/bus/pci/devices"
TREE = """\
-+-[0000:40]-+-01.0
 |           \\-01.1-[41]--+-00.0
 |                        \\-00.1
 \\-[0000:00]-+-00.0
             +-01.0-[01-03]----00.0-[02-03]--+-08.0-[03]----00.0  NVIDIA [fake] -+-[0000:99]-
             |                               \\-09.0-[04]--
             \\-1f.0
"""


PCI_IDS = Path("/usr/share/misc/pci.ids")


def test_classes_in_words_are_those_of_pci_ids() -> None:
    if not PCI_IDS.is_file():
        lacking("no pci.ids here; .ci/run installs what these tests need")
    classes = re.split(r"^C ([0-9a-f]{2})  ", PCI_IDS.read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE)
    named = {name: int(base + number, 16) for base, below in zip(classes[1::2], classes[2::2], strict=True)
             for number, name in re.findall(r"^\t([0-9a-f]{2})  (.+)$", below, re.MULTILINE)}  # fmt: skip
    read = {name: of_words("0000:01:00.0", f"{name}: Some Device") for name in named}
    known = {name: each.class_code for name, each in read.items() if each is not None and each.class_code is not None}
    assert known == {name: named[name] for name in known}
    assert len(known) >= 14


def test_the_tree_gives_every_bridge() -> None:
    found, lines = tree(TREE.splitlines())
    assert found.roots == {("0000", "40"), ("0000", "00")}
    assert found.bridges == {
        ("0000", "41"): "0000:40:01.1", ("0000", "01"): "0000:00:01.0", ("0000", "02"): "0000:01:00.0",
        ("0000", "03"): "0000:02:08.0", ("0000", "04"): "0000:02:09.0",
    }  # fmt: skip
    assert {"0000:41:00.1", "0000:03:00.0", "0000:00:1f.0"} <= found.bdfs
    assert len(lines) == 7


def test_paths_come_from_tree_and_ids() -> None:
    listing, _ = functions(["03:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100] [10de:2330] (rev a1)"])
    facts = files(listing, tree(TREE.splitlines())[0], whole=True)
    assert facts[f"link {D}/0000:03:00.0"] == (
        "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/0000:03:00.0"
    )
    assert facts[f"text {D}/0000:03:00.0/class"] == "0x030200\n"
    assert facts["name pci 10de:2330"] == "GH100 [H100]"
    assert f"text {D}/0000:03:00.0/current_link_speed" not in facts


def test_a_listing_of_some_functions_is_not_that_of_all() -> None:
    listing, _ = functions(["03:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330]"])
    assert f"names {D}" not in files(listing, None, whole=False)
    assert f"link {D}/0000:03:00.0" not in files(listing, None, whole=False)


def test_a_bridge_of_which_nothing_is_told_makes_no_root_bus() -> None:
    listing, _ = functions(["00:01.0 PCI bridge [0604]: Intel Device [8086:1234]", "01:00.0 X [0302]: N D [10de:2330]"])
    assert not [key for key in files(listing, None, whole=True) if key.startswith("link ")]


def test_a_dead_function_has_ids_and_no_link() -> None:
    rows = ["0000:0a:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:1db1] (rev ff) (prog-if ff)",
            "\t!!! Unknown header type 7f", "\tKernel driver in use: nvidia",
            *(f"{at:02x}: {'ff ' * 15}ff" for at in range(0, 256, 16))]  # fmt: skip
    facts = files(functions(rows)[0], None, whole=True)
    assert facts[f"text {D}/0000:0a:00.0/vendor"] == "0x10de\n"
    assert facts[f"text {D}/0000:0a:00.0/current_link_width"] == {"missing": "lost", "detail": "lspci reads all ones"}
    assert f"text {D}/0000:0a:00.0/resource" not in facts


def test_the_words_of_the_link_where_there_are_no_bytes() -> None:
    words = (
        "LnkCap:\tPort #0, Speed 8GT/s, Width x16, ASPM L1",
        "LnkCap2: Supported Link Speeds: 2.5-16GT/s, Crosslink-",
        "LnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)",
    )
    assert link(b"", words) == {
        "max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16",
        "current_link_speed": "2.5 GT/s PCIe", "current_link_width": "8",
    }  # fmt: skip
    old = link(b"", (words[0], "LnkCap2: Supported Link Speeds: 2.5GT/s, Crosslink-"))
    assert old["max_link_speed"] == "2.5 GT/s PCIe"


def test_access_control_is_told_by_its_words() -> None:
    words = ("Capabilities: [100 v1] Virtual Channel", "Capabilities: [148 v1] Access Control Services",
             "ACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
             "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-")  # fmt: skip
    space = extended(bytes(256), words)
    assert space[0x148:0x150].hex() == "0d000100" + "1f001d00"
    assert extended(bytes(256), words[:3]) == space[:0x14C]
    assert extended(bytes(256), words[1:]) == bytes(256)  # the first one stands at 0x100


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (
            "Region 1: Memory at f800000000 (64-bit, prefetchable) [size=16G]",
            "0x000000f800000000 0x000000fbffffffff 0x",
        ),
        (
            "Region 1: Memory at <unassigned> (64-bit, prefetchable) [size=16G]",
            "0x0000000000000000 0x00000003ffffffff 0x",
        ),
        (
            "Region 1: Memory at [virtual] (64-bit, prefetchable) [size=16G]",
            "0x0000000000000000 0x00000003ffffffff 0x",
        ),
    ],
)
def test_regions(line: str, row: str) -> None:
    rows = resource((line,), b"")
    assert rows is not None
    assert rows.splitlines()[1].startswith(row)


@pytest.mark.parametrize(("control", "known"), [("Mem+", False), ("Mem-", True)])
def test_regions_that_an_excerpt_leaves_out_are_not_absent(control: str, known: bool) -> None:
    """A device that decodes memory has a region; lspci prints one without an address as <unassigned>."""
    details = (f"Control: I/O- {control} BusMaster+ SpecCycle- MemWINV-", "Status: Cap+ 66MHz- UDF- FastB2B-")
    assert (resource(details, b"") is not None) is known


def test_the_rom_is_the_seventh_region() -> None:
    rows = resource(("Expansion ROM at f8000000 [disabled] [size=512K]",), b"") or ""
    assert rows.splitlines()[6] == "0x00000000f8000000 0x00000000f807ffff 0x0000000000044200"


def test_a_region_that_cannot_be_placed_is_no_resource() -> None:
    known = "Region 1: Memory at fa000000 (32-bit, non-prefetchable) [size=16M]"
    assert resource((known, "Flags: bus master"), b"") is not None
    assert resource((known, "Region 0: Memory at nowhere [size=16M]"), b"") is None
    assert resource((), bytes(256)) is None
    assert resource(("Memory at fa000000 (32-bit, non-prefetchable) [size=16M]",), bytes(256)) is None


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize(
    ("low", "high", "line"),
    [
        (0xFA00_0000, 0, "Memory at fa000000 (32-bit, non-prefetchable) [size=16M]"),
        (0xFA00_0008, 0, "Memory at fa000000 (32-bit, prefetchable) [size=16M]"),
        (0xE000_000C, 0x3_8000, "Memory at 38000e0000000 (64-bit, prefetchable) [size=16G]"),
        (0xD001, 0, "I/O ports at d000 [size=128]"),
    ],
)
def test_the_bytes_tell_the_number_of_a_region(low: int, high: int, line: str, number: int) -> None:
    """``lspci -v`` prints none; other registers hold other addresses of each kind, whose kind alone differs."""
    config = bytearray(256)
    for at, register in ((0, 0xFB00_0000), (1, 0xFB00_000C), (2, 0xD101), (number, low), (number + 1, high)):
        if register:
            config[0x10 + 4 * at : 0x14 + 4 * at] = register.to_bytes(4, "little")
    rows = (resource((line,), bytes(config)) or "").splitlines()
    assert [at for at, row in enumerate(rows) if int(row.split()[2], 16)] == [number]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no recordings beside this checkout")
@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.lspci-xxxx.gz")), ids=lambda path: path.name)
def test_the_bytes_say_what_lspci_says_of_them(path: Path, tmp_path: Path) -> None:
    """lspci -F reads the dump and prints links and buses in words: they are those of the registers."""
    dump = tmp_path / "dump"
    dump.write_bytes(gzip.decompress(path.read_bytes()))
    asked = [program("lspci"), "-F", str(dump), "-nnvvv"]
    words = functions(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines())[0]
    for bdf, function in merged([functions(dump.read_text().splitlines())[0]]).items():
        told = words[bdf]
        by_words = link(b"", told.details)
        by_bytes = link(function.config, ())
        assert {name: by_bytes.get(name) for name in by_words} == by_words or not by_bytes
        assert secondary_bus(function.config, ()) in (secondary_bus(b"", told.details), None)


NAMED = """\
$ lspci -tv
-+-[0000:40]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex
 |           \\-01.1-[41-43]----00.0-[42-43]--+-00.0-[43]----00.0  NVIDIA Corporation GA100 [A100 SXM4 40GB]
 \\-[0000:00]-+-00.0  Advanced Micro Devices, Inc. [AMD] Starship/Matisse Root Complex
             \\-01.1-[01]----00.0  NVIDIA Corporation GA100 [A100 NVSwitch]
"""


def test_a_tree_with_names_alone() -> None:
    found = one(pasted.read_text, NAMED)
    assert found.tool == "lspci -t"
    assert unread([found], NAMED) == []
    assert found.facts[f"link {D}/0000:43:00.0"] == (
        "../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0/0000:42:00.0/0000:43:00.0"
    )
    assert found.facts[f"text {D}/0000:43:00.0/vendor"] == "0x10de\n"
    assert f"text {D}/0000:43:00.0/class" not in found.facts
    assert found.facts[f"text {D}/0000:01:00.0/class"] == "0x068000\n"
    assert found.facts[f"text {D}/0000:42:00.0/class"] == "0x060400\n"


ONE = """\
$ sudo lspci -vvv -s 19:00.0
19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
\tSubsystem: NVIDIA Corporation Device 16c1
\tIOMMU group: 31
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1
\t\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)
"""


def test_one_device_in_words() -> None:
    found = one(pasted.read_text, ONE)
    assert unread([found], ONE) == []
    told = {key.rpartition("/")[2]: fact for key, fact in found.facts.items() if "0000:19:00.0/" in key}
    assert told["class"] == "0x030200\n"
    assert (told["vendor"], told["device"]) == ("0x10de\n", "0x2330\n")
    assert (told["current_link_speed"], told["current_link_width"]) == ("16.0 GT/s PCIe\n", "8\n")
    assert told["iommu_group"] == "../../../../kernel/iommu_groups/31"
    assert f"names {D}" not in found.facts


def test_two_listings_of_a_function_are_put_together() -> None:
    """The tree of -tv has no class, -nn no interface, a class in brackets may come without ids."""
    whole = functions(["19:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (prog-if 00)"])[0]
    less = functions(["19:00.0 3D controller [0302]: NVIDIA Corporation Device"])[0]
    (only,) = less.values()
    assert (only.class_code, only.vendor, only.device, only.name) == (0x302, None, None, "")
    for other in (less, {"0000:19:00.0": Function(bdf="0000:19:00.0")}):
        assert merged([other, whole]) == merged([whole, other]) == whole


@pytest.mark.parametrize(("name", "bridge", "code"), [
    ("NVIDIA Corporation Device 22b8", True, 0x604), ("NVIDIA Corporation GA100 [A100 NVSwitch]", False, 0x680),
    ("NVIDIA Corporation GA100 [A100 NVSwitch]", True, 0x604), ("NVIDIA Corporation Device 2330", False, None),
])  # fmt: skip
def test_a_leaf_with_others_below_it_is_a_bridge(name: str, bridge: bool, code: int | None) -> None:
    assert of_leaf("0000:19:00.0", name, bridge).class_code == code


def test_a_tree_of_one_domain_and_one_that_lost_its_root() -> None:
    assert tree(["-[00]-+-01.0-[01]----00.0"])[0].bridges == {("0000", "01"): "0000:00:01.0"}
    assert tree(["             \\-01.0", "+-00.0"])[0].bdfs == frozenset()


@pytest.mark.parametrize(("kind", "identity", "found"), [(0, 16, True), (1, 16, True), (9, 16, False), (0, 5, False)])
def test_a_part_of_the_root_complex_has_no_link(kind: int, identity: int, found: bool) -> None:
    """Type 9 of the PCI Express capability; a list of capabilities that leads to itself has none."""
    config = bytearray(256)
    config[0x06], config[0x34], config[0x40], config[0x41], config[0x42] = 0x10, 0x40, identity, 0x40, kind << 4
    config[0x4C:0x4E], config[0x52:0x54] = b"\x03\x01", b"\x83\x00"
    speeds = {"max_link_speed": "8.0 GT/s PCIe", "max_link_width": "16", "current_link_speed": "8.0 GT/s PCIe",
              "current_link_width": "8"}  # fmt: skip
    assert link(bytes(config), ()) == (speeds if found else {})


def test_functions_shown_are_there_beside_the_gpus_that_nvml_lists() -> None:
    nvml = {"nvml nvmlDeviceGetHandleByIndex 0": "0000:19:00.0", "nvml nvmlDeviceGetHandleByIndex 1": "0000:1a:00.0"}
    facts = completed({**one(pasted.read_text, ONE).facts, **nvml})
    assert facts[f"names {D}"] == ["0000:19:00.0", "0000:1a:00.0"]


def test_prose_with_a_bus_id_is_no_listing() -> None:
    assert pasted.read_text(("19:00.0 is the GPU that fails", "00:1f.0 was reset")) == ()


def naive(text: str) -> dict[str, dict[str, str]]:
    """What somebody sees who only splits lines: files by function, where the text shows them."""
    found: dict[str, dict[str, str]] = {}
    now: dict[str, str] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word[-2:-1] == "." and ":" in word:
            now = found.setdefault(word if word.count(":") == 2 else f"0000:{word}", {})
            ids = [part.strip("[]") for part in rest.replace("(rev a1)", "").split() if len(part.strip("[]")) == 9]
            vendor = ids[-1].split(":") if ids and ids[-1][4] == ":" else []
            now |= dict(zip(("vendor", "device"), (f"0x{each}\n" for each in vendor), strict=False))
        elif "LnkCap:" in line or "LnkSta:" in line:
            which = "max_link_width" if "LnkCap" in line else "current_link_width"
            now[which] = line.split("Width x")[1].split()[0].strip(",") + "\n"
        elif "driver in use" in line:
            now["driver"] = line.split()[-1]
    return found


@pytest.mark.parametrize("form", sorted(LSPCI.keys() - {"lspci -t", "lspci -tv", "LnkSta alone"}))
def test_every_form_says_what_a_naive_reader_sees(form: str) -> None:
    found = one(pasted.read_text, LSPCI[form])
    seen = naive(LSPCI[form])
    shown = {key.split("/")[5] for key in found.facts if key.startswith((f"text {D}/", f"link {D}/"))}
    assert {bdf for bdf, told in seen.items() if told} <= shown
    for bdf, files_of in seen.items():
        for name, told in files_of.items():
            kind = "link" if name == "driver" else "text"
            assert str(found.facts[f"{kind} {D}/{bdf}/{name}"]).rpartition("/")[2] == told
    assert unread([found], LSPCI[form]) == []


def test_lines_that_grep_chose_do_not_say_that_others_are_missing() -> None:
    """No BAR and no driver is what a whole listing says, not one of LnkSta alone, nor one that is cut."""
    for text in (LSPCI["grep LnkSta"], LSPCI["lspci -vv"].partition("\tKernel driver in use: nvidia")[0]):
        keys = {
            key for part in pasted.read_text(tuple(text.splitlines())) for key in part.facts if "0000:4b:00.0/" in key
        }
        assert keys
        assert not [key for key in keys if key.endswith(("/driver", "/resource", "/iommu_group"))]
    whole = one(pasted.read_text, LSPCI["lspci -vv"]).facts
    assert f"text {D}/0000:4b:00.0/resource" in whole


CAP, STA = "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1", "\t\tLnkSta:\tSpeed {}, Width x{}"


@pytest.mark.parametrize(("lines", "due"), [
    ([CAP, STA.format("2.5GT/s (downgraded)", "16 (ok)")], ["pass"]),  # an idle GPU
    ([STA.format("2.5GT/s (downgraded)", "16 (ok)")], ["pass"]),
    ([CAP, STA.format("16GT/s (ok)", "8 (downgraded)")], ["unknown"]),
    ([CAP, STA.format("16GT/s", "8")], ["unknown"]),  # pciutils before 3.6 add no word
    ([STA.format("5GT/s (downgraded)", "1 (downgraded)")], ["unknown"]),
    ([CAP, STA.format("16GT/s", "16"), CAP, STA.format("16GT/s", "4")], ["pass", "warn"]),
    (["the link runs at Speed 16GT/s, Width x8"], []),
    ([CAP], []),
])  # fmt: skip
def test_a_link_without_its_device(lines: list[str], due: list[str]) -> None:
    found = pasted.read_text(tuple(lines))
    outcomes = [fact["outcome"] for part in found for fact in part.facts.values() if isinstance(fact, dict)]
    assert outcomes == due
    assert unread(found, "\n".join(lines)) == ([] if "LnkS" in str(lines) or "LnkC" in str(lines) else [1])


@pytest.mark.parametrize(("revision", "details"), [
    ("ff", []), ("ff", ["\t!!! Unknown header type 7f", "\tKernel driver in use: nvidia"]),
    ("a1", ["!!! Unknown header type 7f"]),
])  # fmt: skip
def test_a_gpu_that_reads_all_ones_is_lost(revision: str, details: list[str]) -> None:
    """And it has no BAR that somebody forgot to assign."""
    head = "{}:00.0 3D controller: NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB] (rev {})"
    bridge = "00:02.0 PCI bridge: Intel Corporation Device 6f04 (rev ff)"
    lines = [head.format("06", "a1"), head.format("07", "a1"), head.format("0a", revision), *details, bridge]
    facts = one(pasted.read_text, "\n".join(lines)).facts
    reports = {key.split(" ")[2]: fact for key, fact in facts.items() if key.startswith("stated report ")}
    assert [*reports] == ["0000:0a:00.0"]
    assert isinstance(fact := reports["0000:0a:00.0"], dict)
    assert fact["fault"] == "gpu-lost"
    assert f"text {D}/0000:0a:00.0/resource" not in facts


def test_a_tree_of_numbers_alone_names_no_device() -> None:
    found = one(pasted.read_text, LSPCI["lspci -t"])
    assert found.facts[f"link {D}/0000:4b:00.0"] == "../../../devices/pci0000:4a/0000:4a:02.0/0000:4b:00.0"
    assert all(key.startswith(("link ", "names ")) for key in found.facts)


def test_a_tree_of_numbers_alone_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tree.txt"
    file.write_text(LSPCI["lspci -t"])
    tree = run(capsys, "topo", "--tree", "--from", str(file)).out.splitlines()
    assert any("─ 0000:4b:00.0" in line for line in tree)
    assert "is unknown: see topo --tree" in run(capsys, "topo", "--from", str(file)).out
    verdict = "UNKNOWN  nothing wrong was found, but too few checks ran"
    assert run(capsys, "health", "--from", str(file)).out.startswith(verdict)
