"""Profiles: those that ship, what is refused and how, which one a box gets, and one made of a good box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import BOXES, swept
from test_health_checks import box, changed

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.finding import Status
from dgxcheck.cli import main
from dgxcheck.facts.missing import BadInput
from dgxcheck.profiles.document import Boards, profile
from dgxcheck.profiles.library import boards_for, by_name, is_product, names, select
from dgxcheck.profiles.model import BOARD_KEYS, BOX_KEYS, MEASURED_KEYS, SelectedProfile
from dgxcheck.topology.reference import ALL

RECORDED = [name for name in names() if name in BOXES]
"""Profiles of boxes that ship as recordings."""
GOOD: dict[str, Any] = {
    "title": "a box",
    "boards": ["10de:1db1"],
    "sources": {"S": "a paper"},
    "numbers": {"gpu.count": {"value": 8, "source": "S"}},
    "wiring_source": "S",
    "wiring": [{"gpus": 8, "to_gpus": {"PIX": 1}, "to_hcas": {}}],
}


def test_every_number_that_ships_has_a_source() -> None:
    assert {*RECORDED} >= {"dgx-1-p100", "dgx-1-v100", "dgx-2", "dgx-a100", "dgx-station-v100", "k80-x8"}
    for each in map(by_name, names()):
        assert each.numbers["gpu.count"].value >= 1
        assert all(number.source for number in each.numbers.values())
        assert each.wiring_source
        assert sum(row.gpus for row in each.wiring) == each.numbers["gpu.count"].value
        assert not set(each.boards) - boards_for(None).keys()
    for board in boards_for(None).values():
        assert all(number.source for number in board.numbers.values())


def test_the_wiring_of_a_graph_has_as_many_gpus() -> None:
    by_graph = {reference.name: reference.gpus for reference in ALL}
    for each in map(by_name, names()):
        if each.nvlink_graph:
            assert by_graph[each.nvlink_graph] == each.numbers["gpu.count"].value


def changed_to(**members: Any) -> dict[str, Any]:
    return GOOD | members


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (changed_to(titel="x"), "f.toml: titel: no such key; did you mean title?"),
        (changed_to(title=""), "f.toml: title: is not a non-empty string"),
        (changed_to(products="DGX"), "f.toml: products: is not a list of strings"),
        (changed_to(nvlink_graph="cube"), "nvlink_graph: 'cube' is not a reference graph; valid graphs: dgx-1-"),
        (changed_to(numbers={"gpu.cuont": {"value": 8, "source": "S"}}), "numbers.gpu.cuont: no such key; did you"),
        (changed_to(numbers={"gpu.count": 8}), "numbers.gpu.count: must have the form { value = .., source = .. }"),
        (changed_to(numbers={"gpu.count": {"value": "8", "source": "S"}}), "gpu.count: value is not a number (G"),
        (changed_to(numbers={"gpu.count": {"value": True, "source": "S"}}), "numbers.gpu.count: value is not a number"),
        (changed_to(numbers={"gpu.count": {"value": 65, "source": "S"}}), "gpu.count: 65 is not between 1 and 64 GPUs"),
        (changed_to(numbers={"gpu.count": {"value": 10**400, "source": "S"}}), "00000000 is not between 1 and 64 GPUs"),
        (changed_to(numbers={"gpu.count": {"value": float("nan"), "source": "S"}}), "nan is not between 1 and 64"),
        (changed_to(numbers={"gpu.count": {"value": 8.5, "source": "S"}}), "8.5 is not a whole number (GPUs)"),
        (changed_to(numbers={"gpu.count": {"value": 8, "source": "S", "floor": "7"}}), "floor is not a number"),
        (changed_to(numbers={"gpu.count": {"value": 8, "source": "T"}}), "source 'T' is not listed under [sources]"),
        (changed_to(wiring={"gpus": 8}), "f.toml: wiring: must be an array of tables"),
        (changed_to(wiring=[{"gpus": 0}]), "f.toml: wiring.gpus: is not an integer from 1 to 256"),
        (changed_to(wiring=[{"gpus": 8, "to_gpus": {"PIC": 1}}]), "wiring.to_gpus.PIC: no such key; did you mean PIX?"),
        (changed_to(board={"1db1": {"name": "x"}}), "f.toml: board.1db1: must be a table named vendor:device"),
        (changed_to(board={"10de:1db1": {"name": "x", "memroy": 1}}), "board.10de:1db1.memroy: no such key; did you"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_key(document: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        profile(document, "f", "f.toml")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["S", "PIX"])
words = st.sampled_from([*GOOD, *BOX_KEYS, *BOARD_KEYS, "value", "source", "name", "10de:1db1", "x"])
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4), max_leaves=20
)


@given(st.dictionaries(words, documents))
def test_any_document_is_a_profile_or_refused_in_one_line(document: dict[str, Any]) -> None:
    for parse in (lambda: profile(GOOD | document, "f", "f.toml"), lambda: dict(Boards(document, "f.toml"))):
        refused = ""
        try:
            parse()
        except BadInput as error:
            refused = str(error)
        assert not refused or (refused.startswith("f.toml: ") and "\n" not in refused)


PRODUCT = "text /sys/class/dmi/id/product_name"


def choice(spec: str, name: str = "auto") -> tuple[str, str] | None:
    seen = box(spec)
    found = select(name, seen.snapshot, seen.topology)
    return (found.profile.name, found.how) if found else None


@pytest.mark.parametrize("name", ["dgx-1-p100", "dgx-1-v100", "dgx-2", "dgx-a100", "dgx-station-v100"])
def test_a_dgx_is_known_by_its_product_name(name: str) -> None:
    assert choice(name) == (name, "product")


@pytest.mark.parametrize(
    ("product", "profile"),
    [
        ("DGXA100 920-23687-2530-000", "dgx-a100"),
        ("DGXA100 920-23687-2531-001", "dgx-a100"),
        ("DGXA100", "dgx-a100"),
        ("NVIDIA DGX-2", "dgx-2"),
        ("DGX-2H", "dgx-2"),
        ("NVIDIA DGX A100 640GB", "dgx-a100"),
        ("DGX-1 with V100", "dgx-1-v100"),
        ("DGX-1 with V100-32", "dgx-1-v100"),
        ("NVIDIA DGX-1 with Tesla V100", "dgx-1-v100"),
        ("DGX-1 with P100", "dgx-1-p100"),
        ("NVIDIA DGX Station", "dgx-station-v100"),
        ("DGX Station A100 920-23487-2530-000", "dgx-station-a100"),
        ("DGXH100", "dgx-h100"),
        ("NVIDIA DGX H200", "dgx-h200"),
    ],
)
def test_firmware_names_a_machine_in_many_ways(tmp_path: Path, product: str, profile: str) -> None:
    assert choice(changed(tmp_path, {PRODUCT: f"{product}\n"})) == (profile, "product")


@pytest.mark.parametrize(("model", "due"), [("0x20b0", "dgx-a100"), ("0x20b2", "dgx-a100-80")])
def test_two_machines_of_one_name_are_told_apart_by_their_gpus(tmp_path: Path, model: str, due: str) -> None:
    """The DGX A100 with 80 GB boards has twice the memory and twice the data disks."""
    buses = ("07", "0f", "47", "4e", "87", "90", "b7", "bd")
    facts: dict[str, Any] = {f"text /sys/bus/pci/devices/0000:{bus}:00.0/device": f"{model}\n" for bus in buses}
    assert choice(changed(tmp_path, facts, "dgx-a100")) == (due, "product")


@pytest.mark.parametrize(
    "product", ["DGX Station A200 920-23487-2530-000", "DGX-10", "NVIDIA DGX B9", "DGX", "NVIDIA", "PowerEdge R740"]
)
def test_a_name_with_another_word_is_another_machine(tmp_path: Path, product: str) -> None:
    assert choice(changed(tmp_path, {PRODUCT: f"{product}\n"})) == ("dgx-1-v100", "gpus")


def test_any_name_is_its_own_product_and_an_empty_one_is_none() -> None:
    for name in ("PowerEdge R740", "System", "\u670d\u52a1\u5668", "7X22CTO1WW"):
        assert is_product(f"{name}\n", name)
    assert not is_product("", "")
    assert not is_product("NVIDIA", "System")


def test_the_gpus_decide_what_dgx_1_alone_leaves_open(tmp_path: Path) -> None:
    for base in ("dgx-1-v100", "dgx-1-p100"):
        assert choice(changed(tmp_path, {PRODUCT: "DGX-1\n"}, base)) == (base, "product")


def test_without_a_product_name_the_gpus_tell(tmp_path: Path) -> None:
    assert choice("k80-x8") == ("k80-x8", "gpus")
    assert choice(changed(tmp_path, {PRODUCT: "Virtual Machine\n"})) == ("dgx-1-v100", "gpus")
    assert choice(changed(tmp_path, {PRODUCT: {"missing": "denied"}})) == ("dgx-1-v100", "gpus")


RANKS = "# Using devices\n" + "".join(
    f"#  Rank {rank:2} Group  0 Pid 12345 on node1 device {rank:2} [0x{16 + rank:x}] {{0}}\n" for rank in range(8)
)
SIZES = (
    "#       size       count   type redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "  8589934592  2147483648  float   sum      -1    62000  138.55  242.46      0    62001  138.54  242.45      0\n"
)
PAIRS = (
    "nvbandwidth Version: v0.8\n\n" + "".join(f"Device {i}: {{0}} (00000000:1{i}:00)\n" for i in range(8))
    + "\nRunning device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
    + "".join(f"{i:10}" for i in range(8)) + "\n"
    + "".join(f" {i} " + "".join("    N/A" if i == j else " {1:.2f}" for j in range(8)) + "\n" for i in range(8))
)  # fmt: skip
CSV = "index, pci.bus_id, {}\n0, 00000000:07:00.0, {}\n"


@pytest.mark.parametrize(
    ("text", "due"),
    [
        (RANKS.format("NVIDIA H100 80GB HBM3") + SIZES, ("dgx-h100", "warn")),
        (RANKS.format("NVIDIA A100-SXM4-80GB") + SIZES, ("dgx-a100-80", "pass")),
        (RANKS.format("NVIDIA H100 PCIe") + SIZES, ("", "pass")),
        (CSV.format("name", "NVIDIA B200"), ("dgx-b200", "skip")),
        (CSV.format("pci.device_id", "0x290110DE"), ("dgx-b200", "skip")),
    ],
)
def test_the_gpus_of_a_text_tell_by_name_and_number(tmp_path: Path, text: str, due: tuple[str, str]) -> None:
    """NVSwitches that no output lists are not missing, whatever machine is named."""
    (file := tmp_path / "text.txt").write_text(text, encoding="utf-8")
    found, named = (assess(str(file), Request(profile=name)) for name in ("auto", "dgx-h100"))
    (rate,) = [each.judgement.status.value for each in found.findings if each.id == "measure.collective"]
    assert ("" if found.choice is None else found.choice.profile.name, rate) == due
    assert [each.judgement.status for each in named.findings if each.id == "nvlink.nvswitches"] == [Status.SKIP]
    assert Status.UNKNOWN not in {each.judgement.status for each in found.findings if each.id == "gpu.count"}


def test_counts_exclude_no_profile(tmp_path: Path) -> None:
    assert choice("dgx-1-v100-gpu-lost") == ("dgx-1-v100", "product")


@pytest.mark.parametrize(("box", "name", "fails"), [
    ("dgx-h100", "dgx-a100", {"gpu.model"}), ("dgx-1-v100", "k80-x8", {"gpu.model"}), ("dgx-h100", "dgx-h100", set()),
    ("dgx-a100-nvlink-down", "dgx-h100", {"gpu.model", "nvlink.state"}),
])  # fmt: skip
def test_a_profile_of_other_gpus_compares_their_model_alone(box: str, name: str, fails: set[str]) -> None:
    found = assess(box, Request(profile=name))
    assert {each.id for each in found.findings if each.judgement.status in (Status.WARN, Status.FAIL)} == fails


*SLOTS, CARD = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]


@pytest.mark.parametrize(("product", "numbers"), [("NVIDIA DGX-1 with Tesla V100\n", 5), ("X11DPG\n", 1)])
def test_a_display_card_alone_stands_for_no_other_machine(tmp_path: Path, product: str, numbers: int) -> None:
    """Seven of eight GPUs are missing, whatever the eighth is."""
    card = {f"text /sys/bus/pci/devices/{CARD}/device": "0x1fb2\n", PRODUCT: product}
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": card, "drop": SLOTS}
    (path := tmp_path / "card.json").write_text(json.dumps(document))
    found = assess(str(path), Request(profile="dgx-1-v100"))
    assert [each.judgement.status for each in found.findings if each.id == "gpu.count"] == [Status.FAIL]
    assert found.choice is not None
    assert len(found.choice.profile.numbers) >= numbers


def test_names_none_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert choice("dgx-1-v100", "none") is None
    assert choice("dgx-1-v100", "k80-x8") == ("k80-x8", "named")
    with pytest.raises(BadInput, match="no profile 'dgx-1-v10'; did you mean dgx-1-v100"):
        choice("dgx-1-v100", "dgx-1-v10")
    path = tmp_path / "own.toml"
    for raw, said in (
        (b"\xff", "not UTF-8 text"),
        (b"a = ", "not valid TOML: "),
        (b" " * ((1 << 20) + 1), "larger than 64 KiB"),
    ):
        path.write_bytes(raw)
        assert main(["health", "--from", "dgx-1-v100", "--profile", str(path)]) == 3
        assert capsys.readouterr().err.startswith(f"dgxcheck: {path}: {said}")
    assert main(["health", "--from", "dgx-1-v100", "--profile", str(tmp_path / "no.toml")]) == 3
    assert "cannot be read: No such file" in capsys.readouterr().err


MORE = {("dgx-a100", "network.hcas"): 12, ("dgx-a100-80", "network.hcas"): 12, ("dgx-2", "network.hcas"): 11}
"""What the shipped boxes have beyond their profile's least: both cards with two ports, and a card of the DGX-2H."""


@pytest.mark.parametrize(("name", "rate", "due"), [
    ("NVIDIA H100 80GB HBM3", 13, "warn"), ("NVIDIA H100 80GB HBM3", 26, "pass"), ("NVIDIA H100 PCIe", 13, "pass"),
    ("Tesla V100-SXM2-32GB", 11, "pass"), ("NVIDIA A100-SXM4-80GB", 12, "pass"),
])  # fmt: skip
def test_copies_from_the_host_are_slow_in_any_machine(name: str, rate: float, due: str, tmp_path: Path) -> None:
    """A100 with a host of an older generation of PCIe have half of the reference machine's rate."""
    text = PAIRS[: PAIRS.index("\nRunning")] + (
        "\nRunning host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
        + "".join(f"{i:10}" for i in range(8)) + "\n 0 " + "  {1:.2f}" * 8 + "\n")  # fmt: skip
    (file := tmp_path / "text.txt").write_text(text.format(name, rate), encoding="utf-8")
    found = [each.judgement.status.value for each in assess(str(file)).findings if each.id == "measure.host-bandwidth"]
    assert found == [due] * 8


@pytest.mark.parametrize(("name", "rate", "due"), [
    ("NVIDIA H100 80GB HBM3", 198, "warn"), ("NVIDIA H100 80GB HBM3", 395, "pass"), ("NVIDIA H100 PCIe", 50, "pass"),
    ("Tesla V100-SXM2-32GB", 10, "pass"),
])  # fmt: skip
def test_all_gpus_of_a_board_with_nvswitches_have_its_rate(name: str, rate: float, due: str, tmp_path: Path) -> None:
    (file := tmp_path / "text.txt").write_text(PAIRS.format(name, rate), encoding="utf-8")
    found = [each.judgement.status.value for each in assess(str(file)).findings if each.id == "measure.p2p-bandwidth"]
    assert found == [due] * 28


@pytest.mark.parametrize("name", swept(RECORDED, 4, 1))
def test_a_good_box_meets_the_profile_made_of_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / f"{name}.toml"
    assert main(["profiles", "--new", "rack7", "--from", name, "-o", str(file)]) == 0
    made, shipped = by_name(str(file)), by_name(name)
    assert {(row.gpus, *sorted(row.to_gpus.items()), *sorted(row.to_hcas.items())) for row in made.wiring} == {
        (row.gpus, *sorted(row.to_gpus.items()), *sorted(row.to_hcas.items())) for row in shipped.wiring
    }
    assert (made.beside, made.nvlink_graph) == (shipped.beside, shipped.nvlink_graph)
    for key, number in shipped.numbers.items():
        if key in MEASURED_KEYS:
            continue  # nothing is measured of a box that ships
        due = MORE.get((name, key), number.value)
        assert made.numbers[key].value == pytest.approx(due, rel=0.03), key
    capsys.readouterr()
    assert main(["health", "--from", name, "--profile", str(file)]) == 0
    assert "Score: 100 of 100 against" in capsys.readouterr().out


@pytest.mark.parametrize(("box", "failed"), [("dgx-1-v100-switch-x8", "fails pcie.path: "), ("dgx-1-v100", "")])
def test_a_new_profile_of_a_sick_box_is_told(box: str, failed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "--new", "rack7", "--from", box]) == 0
    told = capsys.readouterr().err
    assert failed in told
    assert bool(told) == bool(failed)


def test_a_new_profile_of_a_text_has_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "smi.csv"
    text.write_text("index, pci.bus_id, name\n0, 00000000:07:00.0, NVIDIA A100-SXM4-40GB\n")
    assert main(["profiles", "--new", "rack7", "--from", str(text)]) == 0
    assert '"gpu.count" = { value = 1,' in capsys.readouterr().out


def test_a_new_profile_has_the_rate_of_infiniband_and_the_fastest_ethernet(tmp_path: Path) -> None:
    facts: dict[str, Any] = {
        "text /sys/class/infiniband/mlx5_0/ports/1/link_layer": "Ethernet\n",
        "text /sys/class/infiniband/mlx5_0/ports/1/rate": "25 Gb/sec (1X EDR)\n",
        "text /sys/class/net/enp2s0f1/carrier": "1\n",
        "text /sys/class/net/enp2s0f1/speed": "1000\n",
    }
    file = tmp_path / "made.toml"
    assert main(["profiles", "--new", "rack7", "--from", changed(tmp_path, facts), "-o", str(file)]) == 0
    made = by_name(str(file)).numbers
    assert (made["network.rate"].value, made["host.ethernet"].value) == (100, 10)


def test_every_shipped_profile_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for name in names():
        assert main(["profiles", name]) == 0
        out = capsys.readouterr().out
        assert all(number.source in out for number in by_name(name).numbers.values())
        assert all(id in out for id in by_name(name).beside)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--new", "My Box", "--from", "dgx-1-v100"], "a name may contain only lower-case letters"),
        (["--new", "x", "dgx-1-v100"], "give a profile to show or --new NAME, not both"),
        (["--from", "dgx-1-v100"], "--from requires --new NAME"),
        (["--new", "x", "--from", "dgx-1-v100-no-nvml"], "NVML lists no GPU"),
    ],
)
def test_refusals(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", *argv]) == 3
    assert said in capsys.readouterr().err


def test_a_gpu_beside_those_of_the_machine_is_held_to_none_of_its_numbers(tmp_path: Path) -> None:
    """That of a display has no NVLink and an older PCIe link, in a DGX Station A100 and in another maker's machine."""
    other = changed(tmp_path, {PRODUCT: "System Product Name\n"}, "dgx-station-a100")
    for name, how in (("dgx-station-a100", "product"), (other, "gpus")):
        judged = assess(name, Request())
        assert judged.choice is not None
        assert judged.choice.how == how
        worst = {each.status for each in judged.findings if "0000:c1:00.0" in (each.subject.bdf or "")}
        assert worst <= {Status.PASS, Status.SKIP, Status.UNKNOWN}


def test_numbers_of_a_profile_override_those_of_the_model_alone() -> None:
    station = SelectedProfile(profile=by_name("dgx-station-a100"), how="named")
    known, own = boards_for(None)["10de:20b0"].numbers, boards_for(station)["10de:20b0"].numbers
    assert own["power_limit"].value == 275 < known["power_limit"].value
    assert own["memory"] == known["memory"]


@pytest.mark.parametrize(("name", "number", "status"), [
    ("NVIDIA L40S", 8, Status.SKIP), ("NVIDIA H100 PCIe", 5, Status.SKIP),
    ("NVIDIA H200", 4, Status.SKIP), ("NVIDIA H200", 7, Status.UNKNOWN), ("NVIDIA H200", 8, Status.SKIP),
])  # fmt: skip
def test_gpus_of_a_text_are_counted_by_boards_and_cards_are_not(
    tmp_path: Path, name: str, number: int, status: Status
) -> None:
    rows = "".join(f"{index}, 00000000:{16 + index:x}:00.0, {name}\n" for index in range(number))
    (file := tmp_path / "text.txt").write_text(f"index, pci.bus_id, name\n{rows}", encoding="utf-8")
    assert [each.judgement.status for each in assess(str(file)).findings if each.id == "gpu.count"] == [status]
