"""Devices that have the same fault, or that failed in the same moment, point to what they share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from sample import BY_NAME
from wired import wired

from dgxcheck.assessment import assess
from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import from_rows, to_rows

LOST: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
V100 = "dgx-1-v100"
GPUS = wired(V100).gpus
A100_GPUS = wired("dgx-a100").gpus
SUPPLY = "host/host/power supply"
REPLAYS = "nvml nvmlDeviceGetPcieReplayCounter"


def xid_79(bdf: str, seconds: float) -> str:
    return f"{seconds:.6f};NVRM: Xid (PCI:{bdf[:-2]}): 79, GPU has fallen off the bus."


def causes(
    folder: Path, log: list[str], facts: Mapping[str, Json], base: str = V100, add: Mapping[str, Json] | None = None,
    later: Mapping[str, Json] | None = None,
) -> dict[str, int]:
    """By component the number of findings that it explains."""
    path = folder / "case.json"
    lines = {f"kmsg {number}": line for number, line in enumerate(log, 40)} | dict(add or {})
    after: dict[str, Json] = {"later": [{"at_s": 60, "facts": dict(later)}]} if later else {}
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": dict(facts), "add": lines, **after}
    path.write_text(json.dumps(document), encoding="utf-8")
    found = assess(str(path))
    assert found.unexplained == ()
    return {"/".join(filter(None, cause.component.key)): len(cause.explains) for cause in found.causes}


def lost(*gpus: int) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetHandleByIndex {gpu}": LOST for gpu in gpus}


@pytest.mark.parametrize(
    ("base", "gpus", "due"),
    [
        ("pcie-x8", (2, 3), "switch/0000:06:00.0"),
        ("pcie-x8", (0, 7), SUPPLY), ("pcie-x8", (0, 2, 5), SUPPLY),
        ("pcie-x8", (4, 5, 6, 7), "host-bridge/pci0000:80"), ("pcie-x8", (4, 5, 6), SUPPLY),
        ("vm-h100-x8", range(8), "host/host/physical host"),
    ],
    ids=["below a switch", "of two sockets", "of both sockets", "of one socket", "of a socket, but one works", "guest"],
)  # fmt: skip
def test_gpus_that_go_in_the_same_moment_share_what_failed(
    base: str, gpus: Sequence[int], due: str, tmp_path: Path
) -> None:
    log = [xid_79(wired(base).gpus[gpu], 3600 + place * 0.7) for place, gpu in enumerate(gpus)]
    assert causes(tmp_path, log, lost(*gpus), base) == {due: 2 * len(gpus)}


@pytest.mark.parametrize(("base", "gpus"), [
    ("dgx-b200", range(4)), ("dgx-b200", range(8)), ("dgx-b200", (1, 6)), ("dgx-b300", (1, 2)),
    (V100, (0, 7)), (V100, (4, 5, 6, 7)), (V100, (2, 3)), ("dgx-a100", (0, 1)),
])  # fmt: skip
def test_gpus_of_a_baseboard_that_go_in_the_same_moment_share_it(
    base: str, gpus: Sequence[int], tmp_path: Path
) -> None:
    """HCAs at the same sockets respond, and those below the same switch."""
    log = [xid_79(wired(base).gpus[gpu], 3600) for gpu in gpus]
    assert causes(tmp_path, log, lost(*gpus), base) == {"host/host/GPU baseboard": 2 * len(gpus)}


def test_a_switch_that_logs_errors_is_to_blame_though_an_adapter_below_it_responds(tmp_path: Path) -> None:
    error = "3600.1;pcieport 0000:08:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer"
    log = [*(xid_79(GPUS[gpu], 3600) for gpu in (2, 3)), error]
    assert causes(tmp_path, log, lost(2, 3)) == {"switch/0000:08:00.0": 5}


@pytest.mark.parametrize(("base", "gpus"), [
    ("gb200-nvl72", range(4)), ("gb200-nvl72", (2, 3)), ("gb300-nvl72", (0, 1)),
])  # fmt: skip
def test_power_shelves_are_no_reason_for_gpus_that_are_lost_beside_a_grace_that_runs(
    base: str, gpus: Sequence[int], tmp_path: Path
) -> None:
    """Of all of them none tells NVML its model any more."""
    lines = {f"kmsg {40 + number}": xid_79(wired(base).gpus[number], 3600) for number in gpus}
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": lost(*gpus), "add": lines}
    (tmp_path / "tray.json").write_text(json.dumps(document), encoding="utf-8")
    (cause,) = assess(str(tmp_path / "tray.json")).causes
    assert (cause.component.part, len(cause.component.shared_by)) == ("compute boards", len(gpus))
    assert cause.actions[0].instruction.code == "inspect-compute-boards"
    assert "replace" not in {action.step for action in cause.actions}


def test_one_gpu_that_is_lost_beside_a_grace_is_no_board(tmp_path: Path) -> None:
    bdf = wired("gb200-nvl72").gpus[2]
    assert causes(tmp_path, [xid_79(bdf, 3600)], lost(2), "gb200-nvl72") == {f"gpu/{bdf}": 2}


def test_half_of_the_ports_that_wait_have_one_subnet_manager(tmp_path: Path) -> None:
    waiting = (("state", "2: INIT\n"), ("sm_lid", "0x0\n"))
    facts: dict[str, Json] = {f"text /sys/class/infiniband/mlx5_{port}/ports/1/{file}": text
                              for port in range(6) for file, text in waiting}  # fmt: skip
    assert causes(tmp_path, [], facts, "dgx-h100") == {"subnet-manager/of the fabric": 6}


def test_gpus_that_go_at_different_times_are_causes_of_their_own(tmp_path: Path) -> None:
    found = causes(tmp_path, [xid_79(GPUS[0], 3600), xid_79(GPUS[7], 3700)], lost(0, 7))
    assert found == {f"gpu/{GPUS[0]}": 2, f"gpu/{GPUS[7]}": 2}


@pytest.mark.parametrize(("base", "hcas"), [
    ("gb200-nvl72", ("0000:01:00.0", "0002:01:00.0")), ("dgx-h100", ("0000:18:00.0", "0000:9a:00.0")),
])  # fmt: skip
def test_adapters_that_stop_in_the_same_moment_do_not_lack_power(
    base: str, hcas: Sequence[str], tmp_path: Path
) -> None:
    log = [f"3600.{place};mlx5_core {hca}: poll_health:800:(pid 0): device's health compromised - reached miss count"
           for place, hca in enumerate(hcas)]  # fmt: skip
    assert causes(tmp_path, log, {}, base) == {f"hca/{hca}": 1 for hca in hcas}


def test_an_adapter_that_stops_with_the_gpus_beside_it_belongs_to_their_switch(tmp_path: Path) -> None:
    hca = "3601.0;mlx5_core 0000:0c:00.0: poll_health:800:(pid 0): device's health compromised - reached miss count"
    log = [xid_79(GPUS[2], 3600), xid_79(GPUS[3], 3600.2), hca]
    assert causes(tmp_path, log, lost(2, 3)) == {"switch/0000:08:00.0": 5}
    assert causes(tmp_path, [hca], lost(2, 3)) == {"switch/0000:08:00.0": 3}  # when the GPUs stopped is not known


@pytest.mark.parametrize(("devices", "due"), [
    ((*GPUS[2:4], "0000:0c:00.0"), {"switch/0000:08:00.0"}),
    (GPUS[2:4], {f"link/{bdf}" for bdf in GPUS[2:4]}),
])  # fmt: skip
def test_a_switch_whose_ports_count_no_errors_can_have_sent_those_of_all_below_it(
    devices: Sequence[str], due: set[str], tmp_path: Path
) -> None:
    counted: Json = "BadTLP 900000\nTOTAL_ERR_COR 900000\n"
    files = {f"text /sys/bus/pci/devices/{bdf}/aer_dev_correctable": counted for bdf in devices}
    assert causes(tmp_path, [], files).keys() == due


@pytest.mark.parametrize(("devices", "due"), [
    (("0000:52:00.0", "0000:4f:00.0"), {"switch/0000:4b:00.0": 3}),
    (("0000:52:00.0", "0000:40:00.0"), {"link/0000:52:00.0": 2, "link/0000:40:00.0": 1}),
], ids=["below a switch", "below two"])  # fmt: skip
def test_replays_of_a_gpu_are_errors_of_its_switch_too(
    devices: Sequence[str], due: dict[str, int], tmp_path: Path
) -> None:
    """An adapter beside it counts none, its errors show in AER alone."""
    counted: Json = "BadTLP 900000\nTOTAL_ERR_COR 900000\n"
    files = {f"text /sys/bus/pci/devices/{bdf}/aer_dev_correctable": counted for bdf in devices}
    files[f"nvml nvmlDeviceGetPcieReplayCounter {devices[0]}"] = 9000
    assert causes(tmp_path, [], files, "hgx-h100") == due


K80_GPUS, BIG_SUR_GPUS = wired("k80-x8").gpus, wired("big-sur").gpus


@pytest.mark.parametrize(("gpus", "has_aer", "due"), [
    ((0, 3), False, {f"link/{K80_GPUS[gpu]}" for gpu in (0, 3)}),
    ((0, 3), True, {f"link/{K80_GPUS[gpu]}" for gpu in (0, 3)}),
    (range(4), False, {"switch/0000:02:00.0"}), (range(4), True, {"switch/0000:02:00.0"}),
])  # fmt: skip
def test_links_without_replays_below_a_switch_are_sound(
    gpus: Sequence[int], has_aer: bool, due: set[str], tmp_path: Path
) -> None:
    """Where the kernel has no files of AER too."""
    texts = json.loads(Path(BY_NAME["k80-x8"]).read_text(encoding="utf-8"))["facts"]
    absent: dict[str, Json] = {
        f"text {folder}/{name}": {"missing": "absent"} for folder, value in texts.items() if isinstance(value, dict)
        for name in value.get("text", ()) if name.startswith("aer_") and not has_aer
    }  # fmt: skip
    later: dict[str, Json] = {f"{REPLAYS} {K80_GPUS[gpu]}": {"": 400} for gpu in gpus}
    assert causes(tmp_path, [], absent, "k80-x8", later=later).keys() == due


@pytest.mark.parametrize(("in_aer", "with_replays", "due"), [
    ((0,), (1,), {f"link/{bdf}" for bdf in BIG_SUR_GPUS[:2]}), ((0, 1), (1,), {"switch/0000:02:00.0"}),
    ((0,), (0, 1), {"switch/0000:02:00.0"}),
])  # fmt: skip
def test_two_links_with_errors_of_different_kinds_need_not_share_them(
    in_aer: Sequence[int], with_replays: Sequence[int], due: set[str], tmp_path: Path
) -> None:
    """AER counts since boot, replays show within a minute."""
    counted: Json = "RxErr 90000\nTOTAL_ERR_COR 90000\n"
    files = {f"text /sys/bus/pci/devices/{BIG_SUR_GPUS[gpu]}/aer_dev_correctable": counted for gpu in in_aer}
    later: dict[str, Json] = {f"{REPLAYS} {BIG_SUR_GPUS[gpu]}": {"": 400} for gpu in with_replays}
    assert causes(tmp_path, [], files, "big-sur", later=later).keys() == due


def test_several_nvswitches_at_once_are_the_fabric(tmp_path: Path) -> None:
    def sxid(bdf: str, seconds: float) -> str:
        return f"{seconds};nvidia-nvswitch1: SXid (PCI:{bdf}): 20034, Fatal, Link 28 LTSSM Fault Up"

    log = [sxid("0000:c4:00.0", 3600), sxid("0000:c6:00.0", 3600.5), sxid("0000:c8:00.0", 3601)]
    assert causes(tmp_path, log, {}, "dgx-a100") == {"host/host/NVSwitches": 3}
    apart = [sxid("0000:c4:00.0", 3600), sxid("0000:c6:00.0", 7200)]
    assert causes(tmp_path, apart, {}, "dgx-a100") == {"nvswitch/0000:c4:00.0": 1, "nvswitch/0000:c6:00.0": 1}


@pytest.mark.parametrize(("switches", "gpus", "due"), [
    (range(6), (), {"host/host/cooling"}), (range(6), range(8), {"host/host/cooling"}),
    ((2,), range(8), {"host/host/cooling"}), ((2,), (), {"nvswitch/0000:c6:00.0"}),
    ((2, 3), (), {"nvswitch/0000:c6:00.0", "nvswitch/0000:c7:00.0"}), ((2, 3), range(8), {"host/host/cooling"}),
])  # fmt: skip
def test_nvswitches_that_are_hot_share_the_air_of_the_host(
    switches: Sequence[int], gpus: Sequence[int], due: set[str], tmp_path: Path
) -> None:
    log = [f"3600;nvidia-nvswitch{at}: SXid (PCI:0000:c{4 + at}:00.0): 10004, Non-fatal, Host_thermal_event_start"
           for at in switches]  # fmt: skip
    held = {f"nvml nvmlDeviceGetCurrentClocksEventReasons {A100_GPUS[gpu]}": 0x20 for gpu in gpus}
    assert causes(tmp_path, log, held, "dgx-a100").keys() == due


@pytest.mark.parametrize("hot_switches", [(2,), (0, 1, 2, 4, 5)])
def test_nvswitches_that_are_hot_beside_one_with_a_fatal_error_do_not_lack_air(
    hot_switches: Sequence[int], tmp_path: Path
) -> None:
    log = [f"3600;nvidia-nvswitch{at}: SXid (PCI:0000:c{4 + at}:00.0): 10004, Non-fatal, Host_thermal_event_start"
           for at in hot_switches]  # fmt: skip
    log.append("9600;nvidia-nvswitch3: SXid (PCI:0000:c7:00.0): 20034, Fatal, Link 28 LTSSM Fault Up")
    due = {f"nvswitch/0000:c{4 + at}:00.0" for at in (*hot_switches, 3)}
    assert causes(tmp_path, log, {}, "dgx-a100").keys() == due


@pytest.mark.parametrize(
    ("seconds", "due"),
    [
        ((3600, 3600, 3600.5, 3601), {"host/host/NVSwitches"}),
        ((3600, 3600, 3605, 3610), {"host/host/NVSwitches"}),
        ((3600, 3600, 3605, 3610.5), {f"gpu/{bdf}/NVLink" for bdf in A100_GPUS[:4]}),
        ((3600, 3600, 3601, 10800), {f"gpu/{bdf}/NVLink" for bdf in A100_GPUS[:4]}),
    ],
    ids=["half of the GPUs", "within seconds", "one later", "three at once"],
)  # fmt: skip
def test_nvlink_errors_of_half_of_the_gpus_at_once_are_the_fabric(
    seconds: Sequence[float], due: set[str], tmp_path: Path
) -> None:
    """Of links that lead to different NVSwitches."""
    text = "74, pid='<unknown>', NVLink: fatal error detected on link {}(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0)"
    log = [f"{at};NVRM: Xid (PCI:{A100_GPUS[gpu][:-2]}): {text.format(3 * gpu)}" for gpu, at in enumerate(seconds)]
    assert causes(tmp_path, log, {}, "dgx-a100").keys() == due


def hot(*gpus: str) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetTemperature {gpu} 0": 88 for gpu in gpus}


@pytest.mark.parametrize(
    ("base", "gpus", "due"),
    [
        (V100, (2, 3), "host/host/cooling"), (V100, (4, 5, 6, 7), "host/host/cooling"),
        (V100, (2,), "gpu/0000:0a:00.0/cooling"),
    ],
)  # fmt: skip
def test_gpus_beside_each_other_that_are_hot_share_their_air(
    base: str, gpus: tuple[int, ...], due: str, tmp_path: Path
) -> None:
    found = causes(tmp_path, [], hot(*(wired(base).gpus[gpu] for gpu in gpus)), base)
    assert found.keys() == {due}


@pytest.mark.parametrize(("gpus", "number"), [((4, 5, 6, 7), 1), ((4,), 2)])
def test_an_adapter_is_hot_for_want_of_the_air_that_gpus_lack(
    gpus: tuple[int, ...], number: int, tmp_path: Path
) -> None:
    log = ["3600.0;mlx5_core 0000:0c:00.0: temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1"]
    assert len(causes(tmp_path, log, hot(*(GPUS[gpu] for gpu in gpus)))) == number


def test_hot_gpus_of_different_switches_are_causes_of_their_own(tmp_path: Path) -> None:
    assert len(causes(tmp_path, [], hot(GPUS[0], GPUS[5]))) == 2


@pytest.mark.parametrize(
    ("base", "down", "due"),
    [(V100, (0, 1, 2), {"fabric/InfiniBand fabric"}), (V100, (1,), {"port/0000:0c:00.0/1"}),
     (V100, (1, 2), {"port/0000:0c:00.0/1", "port/0000:84:00.0/1"}),
     ("dgx-h100", (0, 3, 4, 5), {"fabric/InfiniBand fabric"}),
     ("dgx-h100", (0, 3, 4), {"port/0000:18:00.0/1", "port/0000:40:00.0/1", "port/0000:4f:00.0/1"})],
    ids=["three of four", "one of four", "two", "half of eight", "fewer"],
)  # fmt: skip
def test_most_ports_that_are_down_lead_to_one_switch(
    base: str, down: tuple[int, ...], due: set[str], tmp_path: Path
) -> None:
    path = "text /sys/class/infiniband/mlx5_{}/ports/1/{}"
    states = {"state": "1: DOWN\n", "phys_state": "2: Polling\n"}
    facts: dict[str, Json] = {path.format(hca, name): text for hca in down for name, text in states.items()}
    assert causes(tmp_path, [], facts, base).keys() == due


def test_what_ports_of_ethernet_lead_to_is_no_infiniband(tmp_path: Path) -> None:
    path = "text /sys/class/infiniband/mlx5_{}/ports/1/{}"
    facts: dict[str, Json] = {path.format(hca, "link_layer"): "Ethernet\n" for hca in range(4)}
    facts[path.format(1, "counters/port_xmit_discards")] = "90000000\n"
    assert causes(tmp_path, [], facts, V100).keys() == {"fabric/Ethernet fabric"}


def test_a_port_of_another_fabric_hides_none(tmp_path: Path) -> None:
    """Seven of the eight ports of InfiniBand are down, and one of four of Ethernet."""
    path = "text /sys/class/infiniband/mlx5_{}/ports/1/{}"
    facts: dict[str, Json] = {path.format(hca, "link_layer"): "Ethernet\n" for hca in range(8, 12)}
    facts |= {path.format(hca, "state"): "1: DOWN\n" for hca in range(9) if hca != 7}
    facts |= {path.format(hca, "phys_state"): "2: Polling\n" for hca in range(9) if hca != 7}
    assert causes(tmp_path, [], facts, "dgx-h100").keys() == {"fabric/InfiniBand fabric", "port/0000:aa:00.1/1"}


def config(base: str, bdf: str, at: int, mask: int) -> dict[str, Json]:
    """Config space of a function in which one byte has fewer bits."""
    folder = f"/sys/bus/pci/devices/{bdf}"
    rows = from_rows(json.loads(Path(BY_NAME[base]).read_text(encoding="utf-8"))["facts"][folder]["data"]["config"])
    assert rows is not None
    raw = bytearray(rows)
    raw[at] &= mask
    return {f"data {folder}/config": to_rows(bytes(raw))}


@pytest.mark.in_ci
@pytest.mark.parametrize("base", [V100, "dgx-a100", "dgx-h100"])
@pytest.mark.parametrize(
    ("at", "mask", "due"),
    [(0x80, 0x1F, "host/host/MaxPayload setting"), (4, 0xFB, "host/host/Command registers")],
    ids=["MaxPayload", "bus mastering"],
)
def test_registers_of_all_gpus_have_one_cause(at: int, mask: int, due: str, base: str, tmp_path: Path) -> None:
    gpus = wired(base).gpus
    every = {key: value for gpu in gpus for key, value in config(base, gpu, at, mask).items()}
    assert {*causes(tmp_path, [], every, base)} == {due}
    (one,) = causes(tmp_path, [], config(base, gpus[2], at, mask), base)
    assert one.startswith(f"gpu/{gpus[2]}/")


@pytest.mark.parametrize("base", [V100, "dgx-a100", "gb300-nvl72"])
def test_host_bridges_without_a_numa_node_are_one_firmware(base: str, tmp_path: Path) -> None:
    gpus = wired(base).gpus
    without: dict[str, Json] = {f"text /sys/bus/pci/devices/{gpu}/numa_node": "-1\n" for gpu in gpus}
    assert {*causes(tmp_path, [], without, base)} == {"host/host/NUMA setting"}


def test_a_node_more_for_each_socket_is_a_setting(tmp_path: Path) -> None:
    """Sub-NUMA clustering puts no GPU into a wrong slot, whatever number of them is at the new nodes."""
    shipped = json.loads(Path(BY_NAME["dgx-h100"]).read_text(encoding="utf-8"))["facts"]
    devices, nodes = "/sys/bus/pci/devices", "/sys/devices/system/node"
    moved: dict[str, Json] = {f"names {nodes}": [f"node{node}" for node in range(4)]}
    for where in (each for each in shipped if each.startswith(f"{devices}/")):
        device, node = where.removeprefix(f"{devices}/"), shipped[where]["text"].get("numa_node")
        place = shipped[devices]["link"].get(device, f"pci0000:{device[5:7]}")
        if place.partition("pci0000:")[2][:2] >= {"0\n": "4a", "1\n": "c9"}.get(str(node), "~"):
            moved[f"text {where}/numa_node"] = f"{int(node) + 2}\n"
    cpus = {f"text {nodes}/node{node}/cpulist": f"{28 * place}-{28 * place + 27}\n"
            for node, place in enumerate((0, 2, 1, 3))}  # fmt: skip
    moved |= {key: cpus.pop(key) for key in [*cpus][:2]}
    assert {*causes(tmp_path, [], moved, "dgx-h100", cpus)} == {"host/host/NUMA setting"}


def test_pairs_of_all_gpus_without_peer_access_have_one_cause(tmp_path: Path) -> None:
    def blocked(gpus: Sequence[str]) -> dict[str, Json]:
        pairs = ((a, b) for a in gpus for b in wired("dgx-h100").gpus if a != b)
        both = {pair for a, b in pairs for pair in ((a, b), (b, a))}
        return {f"nvml nvmlDeviceGetP2PStatus {a} {b} {kind}": 2 for a, b in both for kind in (0, 1)}

    gpus = wired("dgx-h100").gpus
    assert {*causes(tmp_path, [], blocked(gpus), "dgx-h100")} == {"host/host/P2P setting"}
    assert {*causes(tmp_path, [], blocked(gpus[3:4]), "dgx-h100")} == {f"gpu/{gpus[3]}"}


def test_both_ends_of_a_link_inside_a_switch_have_one_cause(tmp_path: Path) -> None:
    ends = ("0000:04:00.0", "0000:05:00.0")
    narrow: dict[str, Json] = {f"text /sys/bus/pci/devices/{end}/current_link_width": "8\n" for end in ends}
    assert causes(tmp_path, [], narrow, "dgx-a100") == {"link/0000:05:00.0": 2}


def at_work(gpus: Sequence[str]) -> dict[str, Json]:
    busy: dict[str, Json] = {"UtilizationRates": {"gpu": 98, "memory": 60}, "CurrentClocksEventReasons": 0}
    return {f"nvml nvmlDeviceGet{query} {gpu}": fact for gpu in gpus for query, fact in busy.items()}


def narrow_and_slow(narrow: str, slow: str) -> dict[str, Json]:
    return {
        f"text /sys/bus/pci/devices/{narrow}/current_link_width": "8\n",
        f"nvml nvmlDeviceGetCurrPcieLinkWidth {narrow}": 8,
        f"text /sys/bus/pci/devices/{slow}/current_link_speed": "2.5 GT/s PCIe\n",
        f"nvml nvmlDeviceGetCurrPcieLinkGeneration {slow}": 1,
        **at_work([slow]),
    }


def test_links_below_a_switch_that_are_narrow_and_slow_have_one_cause(tmp_path: Path) -> None:
    narrow, slow = wired("pcie-x8").gpus[:2]
    assert causes(tmp_path, [], narrow_and_slow(narrow, slow), "pcie-x8") == {"switch/0000:02:00.0": 2}


def test_a_switch_below_which_another_link_is_sound_is_no_cause(tmp_path: Path) -> None:
    narrow, slow = A100_GPUS[:2]
    found = causes(tmp_path, [], narrow_and_slow(narrow, slow), "dgx-a100")
    assert {component.split("/")[0] for component in found} == {"link"}


@pytest.mark.parametrize(("base", "more", "first"), [
    ("dgx-b200", (), "inspect-baseboard"), ("dgx-h200", (), "inspect-baseboard"),
    ("dgx-b200", ("0000:05:00.0", "0000:05:00.1", "0000:06:00.0", "0000:06:00.1"), "inspect-baseboard"),
    (V100, (), "inspect-baseboard"), ("dgx-b300", (), "inspect-baseboard"),
])  # fmt: skip
def test_no_gpu_of_a_baseboard_is_on_pci(base: str, more: tuple[str, ...], first: str, tmp_path: Path) -> None:
    """Nobody but the vendor takes modules out; adapters beside them respond."""
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": {"nvml nvmlDeviceGetCount": 0},
                "drop": [*wired(base).gpus, *more]}  # fmt: skip
    (tmp_path / "none.json").write_text(json.dumps(document), encoding="utf-8")
    (cause,) = assess(str(tmp_path / "none.json")).causes
    assert cause.actions[0].instruction.code == first
    assert "reseat" not in {action.step for action in cause.actions}
    assert (cause.confidence.level, cause.confidence.reason == "rest-responds") == (
        "inferred", first == "inspect-baseboard")  # fmt: skip
