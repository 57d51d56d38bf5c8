"""NCCL's topology file: the class of every pair as far as the file holds it, whole and cut."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.facts.missing import Json
from dgxcheck.readers import formats
from dgxcheck.readers.nccl import topology_xml
from dgxcheck.readers.nvidia_smi import query_documents

D = "/sys/bus/pci/devices"


def pci(bdf: str, code: str, inside: str = "", vendor: str = "0x10de") -> str:
    return (
        f'<pci busid="{bdf}" class="{code}" vendor="{vendor}" device="0x20b0" link_speed="16.0 GT/s PCIe"'
        f' link_width="16">\n{inside}\n</pci>'
    )


def gpu(bdf: str, dev: int, *links: tuple[str, int, str]) -> str:
    nvlinks = "\n".join(f'<nvlink target="{to}" count="{count}" tclass="{code}"/>' for to, count, code in links)
    return pci(bdf, "0x030200", f'<gpu dev="{dev}" sm="80" rank="{dev}" gdr="1">\n{nvlinks}\n</gpu>')


def net(bdf: str, *names: str) -> str:
    ports = "\n".join(f'<net name="{name}" dev="0" speed="200000" port="1" gdr="1"/>' for name in names)
    return pci(bdf, "0x020700", f"<nic>\n{ports}\n</nic>", "0x15b3")


def cpu(node: int, inside: str) -> str:
    return f'<cpu numaid="{node}" affinity="000fffff" arch="x86_64">\n{inside}\n</cpu>'


SWITCHED = [("0000:c4:00.0", 6, "0x068000"), ("0000:c5:00.0", 6, "0x068000")]
NEAR = pci("0000:03:00.0", "0x060400", gpu("0000:07:00.0", 0, *SWITCHED) + "\n" + net("0000:0c:00.0", "mlx5_0"))
DEEP = pci("0000:05:00.0", "0x060400", gpu("0000:0f:00.0", 1, *SWITCHED))
OUTER = pci("0000:01:00.0", "0x060400", f"{NEAR}\n{DEEP}")
CARD = net("0000:e1:00.0", "mlx5_4") + "\n" + net("0000:e1:00.1", "mlx5_5")
TEXT = f'<system version="1">\n{cpu(0, OUTER)}\n{cpu(1, gpu("0000:87:00.0", 2) + CARD)}\n</system>\n'


def labels(text: str, kind: str = "label-pci") -> dict[str, Json]:
    found = one(topology_xml.read_topology_xml, text).facts
    return {
        key.removeprefix(f"stated {kind} "): fact for key, fact in found.items() if key.startswith(f"stated {kind} ")
    }


@pytest.mark.parametrize(
    ("a", "b", "label"),
    [
        ("0000:07:00.0", "mlx5_0", "PIX"),
        ("0000:0f:00.0", "mlx5_0", "PXB"),
        ("0000:07:00.0", "0000:0f:00.0", "PXB"),
        ("0000:07:00.0", "0000:87:00.0", "SYS"),
        ("mlx5_4", "mlx5_5", "PIX"),
    ],
)
def test_the_class_of_a_pair(a: str, b: str, label: str) -> None:
    shown = labels(TEXT)
    assert (shown[f"{a} {b}"], shown[f"{b} {a}"]) == (label, label)


def test_without_host_bridges_phb_and_node_are_one() -> None:
    fact = labels(TEXT)["0000:87:00.0 mlx5_4"]
    assert isinstance(fact, dict)
    assert fact["missing"] == "unrecorded"


def test_nvlinks_to_switches_join_those_that_have_them() -> None:
    shown = labels(TEXT, "label")
    assert shown["0000:07:00.0 0000:0f:00.0"] == "NV12"
    assert shown["0000:07:00.0 0000:87:00.0"] == "SYS"


@pytest.mark.parametrize(("node", "told"), [(1023, "1023\n"), (1024, None)])
def test_the_highest_numa_node_is_the_kernels(node: int, told: str | None) -> None:
    facts = one(topology_xml.read_topology_xml, TEXT.replace('numaid="1"', f'numaid="{node}"')).facts
    assert facts.get("text /sys/bus/pci/devices/0000:87:00.0/numa_node") == told


def test_nvlinks_to_each_other_count() -> None:
    one_way = gpu("0000:06:00.0", 0, ("0000:07:00.0", 2, "0x030200")) + gpu("0000:07:00.0", 1)
    assert labels(cpu(0, one_way), "label")["0000:06:00.0 0000:07:00.0"] == "NV2"


@pytest.mark.parametrize(("there", "back", "told"), [(12, 12, []), (1, 12, ["1 NVLink to"]), (12, 2, ["2 NVLinks to"])])
def test_a_pair_that_shows_more_nvlinks_at_one_end(there: int, back: int, told: list[str]) -> None:
    both = gpu("0000:06:00.0", 0, ("0000:07:00.0", there, "0x030200")) + gpu(
        "0000:07:00.0", 1, ("0000:06:00.0", back, "0x030200")
    )
    assert labels(cpu(0, both), "label")["0000:06:00.0 0000:07:00.0"] == f"NV{min(there, back)}"
    reports = {key: str(fact["text"]) for key, fact in one(topology_xml.read_topology_xml, cpu(0, both)).facts.items()
               if key.startswith("stated report") and isinstance(fact, dict)}  # fmt: skip
    fewer = "0000:06:00.0" if there < back else "0000:07:00.0"
    assert [*reports] == [f"stated report {fewer} NCCL-topology-nvlink"] * len(told)
    assert [text.partition(" 0000")[0] for text in reports.values()] == told


def test_a_cut_or_snipped_file_does_not_tell_that_a_gpu_shows_fewer_nvlinks() -> None:
    both = gpu("0000:06:00.0", 0, ("0000:07:00.0", 2, "0x030200")) + gpu(
        "0000:07:00.0", 1, ("0000:86:00.0", 2, "0x030200"), ("0000:06:00.0", 1, "0x030200")
    )
    text = cpu(0, both)
    at = text.rindex("<nvlink")
    for cut in (text[:at], f"{text[:at]}\n...\n{text[text.index('>', at) + 1 :]}"):
        assert not [key for key in one(topology_xml.read_topology_xml, cut).facts if key.startswith("stated report")]
    assert [key for key in one(topology_xml.read_topology_xml, text).facts if key.startswith("stated report")]


@pytest.mark.parametrize(("limit", "most", "is_whole"), [
    ("MOST_CARDS", 7, True), ("MOST_CARDS", 6, False), ("DEEPEST", 6, True), ("DEEPEST", 5, False),
])  # fmt: skip
def test_a_file_has_limits(limit: str, most: int, is_whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = one(topology_xml.read_topology_xml, TEXT).facts
    monkeypatch.setattr(formats if limit == "DEEPEST" else topology_xml, limit, most)
    assert (one(topology_xml.read_topology_xml, TEXT).facts == whole) == is_whole


def test_every_line_is_read_and_nvidia_smis_reader_leaves_it_alone() -> None:
    assert unread([one(topology_xml.read_topology_xml, TEXT)], TEXT) == []
    assert query_documents.read_xml(tuple(TEXT.splitlines())) == ()


def test_files_and_order_of_the_gpus() -> None:
    facts = one(topology_xml.read_topology_xml, TEXT).facts
    assert facts[f"text {D}/0000:87:00.0/numa_node"] == "1\n"
    assert facts[f"text {D}/0000:07:00.0/current_link_width"] == "16\n"
    assert facts["nvml nvmlDeviceGetHandleByIndex 2"] == "0000:87:00.0"
    assert facts["names /sys/class/infiniband"] == ["mlx5_0", "mlx5_4", "mlx5_5"]


@pytest.mark.parametrize(("old", "new", "key", "value"), [
    ('dev="1"', 'dev="0"', "nvml nvmlDeviceGetHandleByIndex 0", None),
    ('link_width="16"', 'link_width="0"', f"text {D}/0000:07:00.0/current_link_width", None),
    ('vendor="0x10de"', 'vendor="0xffff"', f"text {D}/0000:07:00.0/vendor", "0x10de\n"),
    ('device="0x20b0"', 'device="0x0000"', f"text {D}/0000:07:00.0/device", None),
    ('busid="0000:87:00.0"', 'busid="?"', f"text {D}/None/vendor", None),
    ('class="0x020700"', 'class="?"', "names /sys/class/infiniband", None),
    ('name="mlx5_4"', 'name="mlx5 4"', "names /sys/class/infiniband", ["mlx5_0", "mlx5_5"]),
    ('name="mlx5_4"', 'name=""', "names /sys/class/infiniband", ["mlx5_0", "mlx5_5"]),
    ("<nic>", '<nic>\n<gpu dev="7" sm="90"/>\n<nvlink target="0000:07:00.0" count="3" tclass="0x030200"/>',
     "nvml nvmlDeviceGetHandleByIndex 2", "0000:87:00.0"),
    ('numaid="1"', 'numaid="-1"', "stated label-pci 0000:07:00.0 0000:87:00.0",
     {"missing": "unrecorded", "detail": "the file does not show the CPU of both"}),
])  # fmt: skip
def test_what_a_file_does_not_say_is_no_fact(old: str, new: str, key: str, value: Json) -> None:
    facts = one(topology_xml.read_topology_xml, TEXT.replace(old, new)).facts
    assert facts.get(key) == value


@pytest.mark.parametrize("cut", range(0, len(TEXT), 97))
def test_a_cut_file_gives_no_label_that_the_whole_does_not(cut: int) -> None:
    whole = labels(TEXT)  # without the names of a NIC whose tags are cut off
    for text in (TEXT[:cut], TEXT[cut:]):
        for part in topology_xml.read_topology_xml(tuple(text.splitlines())):
            for key, fact in part.facts.items():
                pair = key.removeprefix("stated label-pci ")
                assert not isinstance(fact, str) or pair == key or whole.get(pair, fact) == fact
