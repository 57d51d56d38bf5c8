"""The shipped reconstructions: made again byte for byte, and every layer says the same as the others."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, pairwise

import pytest
from checkout import ROOT
from together import for_each
from topology_boxes import PUBLISHED

from dgxcheck.assessment.machine import examine
from dgxcheck.facts.missing import Missing
from dgxcheck.profiles.library import select
from dgxcheck.source.protocol import Json, Source
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import WIRING, survey
from fixtures.reconstruct.__main__ import BOXES, reconstruction
from fixtures.reconstruct.assemble import AFTER_S, answers_of
from fixtures.reconstruct.box import Box
from fixtures.reconstruct.config_space import EXPRESS
from fixtures.reconstruct.tree import BRIDGES, full, place

FOLDER = ROOT / "fixtures"
DEVICES = "/sys/bus/pci/devices"
P100_CUBE = {
    "0-1": 1, "0-2": 1, "0-3": 1, "0-4": 1, "1-2": 1, "1-3": 1, "1-5": 1, "2-3": 1,
    "2-6": 1, "3-7": 1, "4-5": 1, "4-6": 1, "4-7": 1, "5-6": 1, "5-7": 1, "6-7": 1,
}  # fmt: skip
V100_CUBE = P100_CUBE | {"0-3": 2, "0-4": 2, "1-2": 2, "1-5": 2, "2-3": 2, "4-7": 2, "5-6": 2, "6-7": 2}
STATION = {"0-1": 1, "0-2": 1, "0-3": 2, "1-2": 2, "1-3": 1, "2-3": 1}
STATION_A100 = dict.fromkeys(("0-1", "0-2", "0-4", "1-2", "1-4", "2-4"), 4)
PAIRS: dict[str, dict[str, int]] = {
    "dgx-1-p100": P100_CUBE, "dgx-1-v100": V100_CUBE, "dgx-station-v100": STATION, "dgx-station-a100": STATION_A100,
    "k80-x8": {}, "dgx-a100": {},
    "dgx-2": {}, "dgx-h100": {}, "pcie-x4": {}, "pcie-x8": {}, "dgx-h200": {}, "hgx-h100": {}, "dgx-b200": {},
    "dgx-b300": {}, "gb200-nvl72": {}, "gb300-nvl72": {}, "gh200": {}, "l40s-x8": {}, "geforce-x4": {},
    "dgx-a100-80": {}, "big-sur": {}, "vm-h100-x8": {}, "vgpu-l40s": {},
}  # fmt: skip
BUS_IDS = {
    "dgx-1-p100": "06 07 0a 0b 85 86 89 8a", "dgx-1-v100": "06 07 0a 0b 85 86 89 8a", "dgx-station-v100": "07 08 0e 0f",
    "k80-x8": "06 07 0a 0b 85 86 89 8a", **dict.fromkeys(("dgx-a100", "dgx-a100-80"), "07 0f 47 4e 87 90 b7 bd"),
    **dict.fromkeys(("dgx-h100", "dgx-h200", "dgx-b200", "hgx-h100"), "1b 43 52 61 9d c3 d1 df"),
    "dgx-b300": "1a 3a 5a 7a 9a ba da f6", "gb200-nvl72": "0008:01 0009:01 0018:01 0019:01",
    "gb300-nvl72": "0008:06 0009:06 0018:06 0019:06", "gh200": "0009:01", "l40s-x8": "1a 1b 3d 3e 9b 9c ba bb",
    "geforce-x4": "21 22 23 24", "dgx-station-a100": "01 47 81 c1 c2",
    "dgx-2": "34 36 39 3b 57 59 5c 5e b7 b9 bc be e0 e2 e5 e7", "pcie-x4": "07 08 0e 0f",
    **dict.fromkeys(("pcie-x8", "big-sur"), "04 05 08 09 84 85 88 89"), "vm-h100-x8": "53 64 75 86 97 a8 b9 ca",
    "vgpu-l40s": "02",
}  # fmt: skip
GENERATION = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32.0": 5, "64.0": 6}
every_box = for_each("box", BOXES)


def test_the_table_has_profile_faults_and_published_cells_of_each() -> None:
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if ".json` |" in line]
    bases = Counter(json.loads(path.read_text())["base"] for path in (FOLDER / "faults").iterdir())
    said = {file.strip("`").removesuffix(".json"): told for file, _, _, *told, _ in rows}
    cells = {name: str(of.cells) for name, of in PUBLISHED.items()}
    assert said == {
        path.stem: [_profile(path.stem), str(bases[path.stem]), cells.get(path.stem, "-")]
        for path in FOLDER.glob("*.json")
    }


def _profile(name: str) -> str:
    machine = examine(name, (*WIRING, "host", "gpu_board"))
    choice = select("auto", machine.snapshot, machine.topology)
    return choice.profile.name if choice else "-"


def committed(box: Box) -> Source:
    """The file that ships."""
    return open_source(str(FOLDER / f"{box.name}.json"))


def text(source: Source, path: str) -> str:
    answer = source.text(path)
    assert isinstance(answer, str), answer
    return answer.strip()


def bars(resource: str) -> list[int]:
    """Sizes of the first six regions."""
    ends = ([int(word, 16) for word in line.split()] for line in resource.splitlines()[:6])
    return [last - first + 1 if last else 0 for first, last, _ in ends]


def cpus(cpulist: str) -> set[int]:
    ends = ([int(end) for end in part.split("-")] for part in cpulist.split(","))
    return {cpu for each in ends for cpu in range(each[0], each[-1] + 1)}


@pytest.mark.in_ci
@every_box
def test_the_committed_file_is_what_the_generator_writes(box: Box) -> None:
    assert (FOLDER / f"{box.name}.json").read_text(encoding="utf-8") == reconstruction(box)


@every_box
def test_a_file_is_below_700_kb_and_says_that_it_is_reconstructed(box: Box) -> None:
    path = FOLDER / f"{box.name}.json"
    assert path.stat().st_size < 700_000
    head = json.loads(path.read_text(encoding="utf-8"))
    assert (head["schema"], head["identities"]) == ("dgxcheck/recording/1", "made up")
    assert head["provenance"]["kind"] == "reconstructed"
    groups = head["provenance"]["groups"]
    assert {"pci tree", "config space", "identity", "nvml values", "later"} <= set(groups)
    for group in groups.values():
        assert group["facts"]
        assert group["how"]
        assert isinstance(group["sources"], list)


@every_box
def test_gpus_stand_at_the_published_bus_ids_in_nvmls_order(box: Box) -> None:
    source = committed(box)
    listed = [source.nvml("nvmlDeviceGetHandleByIndex", "", index) for index in range(len(box.gpus))]
    assert listed == [full(f"{bus}:00.0") for bus in BUS_IDS[box.name].split()]
    assert source.nvml("nvmlDeviceGetCount") == len(listed)


@every_box
def test_nvml_and_sysfs_agree_on_the_pci_link(box: Box) -> None:
    source = committed(box)
    for gpu in box.gpus:
        base = f"{DEVICES}/{gpu.bdf}"
        if isinstance(source.text(f"{base}/max_link_width"), Missing):
            assert box.name == "vgpu-l40s"  # a vGPU has no link
            continue
        assert source.nvml("nvmlDeviceGetCurrPcieLinkWidth", gpu.bdf) == int(text(source, f"{base}/current_link_width"))
        assert source.nvml("nvmlDeviceGetMaxPcieLinkWidth", gpu.bdf) == int(text(source, f"{base}/max_link_width"))
        for function, file in (("Curr", "current_link_speed"), ("Max", "max_link_speed")):
            generation = GENERATION[text(source, f"{base}/{file}").split()[0]]
            assert source.nvml(f"nvmlDeviceGet{function}PcieLinkGeneration", gpu.bdf) == generation


@every_box
def test_nvml_and_sysfs_agree_on_bar1(box: Box) -> None:
    source = committed(box)
    for gpu in box.gpus:
        sizes = bars(text(source, f"{DEVICES}/{gpu.bdf}/resource"))
        assert sizes == [16 << 20, (gpu.board or box.board).bar1_mib << 20, 0, 32 << 20, 0, 0]
        memory = source.nvml("nvmlDeviceGetBAR1MemoryInfo", gpu.bdf)
        if isinstance(memory, Missing):
            assert box.name in ("dgx-station-v100", "dgx-2", "big-sur", "vgpu-l40s", "gh200")
            assert memory.detail == ("no published dump" if box.name != "gh200" else "NVML 3: Not Supported")
        else:
            assert isinstance(memory, dict)
            assert memory["bar1Total"] == sizes[1]


@every_box
def test_cpu_lists_of_node_function_and_nvml_agree(box: Box) -> None:
    source = committed(box)
    for gpu in box.gpus:
        node = text(source, f"{DEVICES}/{gpu.bdf}/numa_node")
        cpulist = text(source, f"{DEVICES}/{gpu.bdf}/local_cpulist")
        assert text(source, f"/sys/devices/system/node/node{node}/cpulist") == cpulist
        words = source.nvml("nvmlDeviceGetCpuAffinity", gpu.bdf)
        assert isinstance(words, list)
        assert {
            64 * place + bit
            for place, word in enumerate(words)
            for bit in range(64)
            if isinstance(word, int) and word >> bit & 1
        } == cpus(cpulist)


@every_box
def test_nvml_and_sysfs_agree_on_ids(box: Box) -> None:
    source = committed(box)
    for gpu in box.gpus:
        info = source.nvml("nvmlDeviceGetPciInfo", gpu.bdf)
        assert isinstance(info, dict)
        files = ("device", "vendor", "subsystem_device", "subsystem_vendor")
        device, vendor, subsystem, owner = (int(text(source, f"{DEVICES}/{gpu.bdf}/{file}"), 16) for file in files)
        assert (info["pciDeviceId"], info["pciSubSystemId"]) == (device << 16 | vendor, subsystem << 16 | owner)


def links(source: Source, box: Box) -> dict[str, Counter[str]]:
    """Per GPU: bus id of the far end of each link that is up."""
    ends: dict[str, Counter[str]] = {}
    for gpu in box.gpus:
        ends[gpu.bdf] = Counter()
        for link in range(36):
            if source.nvml("nvmlDeviceGetNvLinkState", gpu.bdf, link) == 1:
                info = source.nvml("nvmlDeviceGetNvLinkRemotePciInfo", gpu.bdf, link)
                if isinstance(info, Missing):  # an NVSwitch that is not on PCI
                    assert source.nvml("nvmlDeviceGetNvLinkRemoteDeviceType", gpu.bdf, link) == 2
                    continue
                assert isinstance(info, dict)
                ends[gpu.bdf][str(info["busId"])[4:].lower()] += 1
    return ends


@every_box
def test_nvlinks_have_two_ends_and_form_the_published_graph(box: Box) -> None:
    ends = links(committed(box), box)
    bdfs = [gpu.bdf for gpu in box.gpus]
    pairs = {f"{i}-{j}": ends[a][b] for (i, a), (j, b) in combinations(enumerate(bdfs), 2) if ends[a][b]}
    assert pairs == PAIRS[box.name]
    assert all(ends[a][b] == ends[b][a] for a, b in combinations(bdfs, 2))


def test_every_a100_has_two_links_to_each_nvswitch() -> None:
    box = next(box for box in BOXES if box.name == "dgx-a100")
    switches = {f"0000:c{number}:00.0": 2 for number in range(4, 10)}
    assert all(dict(far) == switches for far in links(committed(box), box).values())


def test_every_h100_has_eighteen_links_to_four_nvswitches() -> None:
    box = next(box for box in BOXES if box.name == "dgx-h100")
    switches = {"0000:05:00.0": 5, "0000:06:00.0": 5, "0000:07:00.0": 4, "0000:08:00.0": 4}
    assert all(dict(far) == switches for far in links(committed(box), box).values())


def test_a_gpu_of_a_dgx_2_has_a_link_to_each_nvswitch_of_its_baseboard() -> None:
    box = next(box for box in BOXES if box.name == "dgx-2")
    far = [set(ends) for ends in links(committed(box), box).values()]
    halves = [{f"0000:{half}{n}:00.0" for n in (1, 2, 3, 5, 6, 7)} for half in "6c"]
    assert far == [halves[0]] * 8 + [halves[1]] * 8


def test_a_station_has_two_unwired_positions_and_a_p100_has_four_positions_at_all() -> None:
    for name, states in (("dgx-station-v100", [1, 1, 1, 1, 0, 0]), ("dgx-1-p100", [1, 1, 1, 1])):
        box = next(box for box in BOXES if box.name == name)
        source = committed(box)
        seen = [source.nvml("nvmlDeviceGetNvLinkState", box.gpus[0].bdf, link) for link in range(36)]
        assert [state for state in seen if not isinstance(state, Missing)] == states
        gaps = [state.detail for state in seen[len(states) :] if isinstance(state, Missing) and state.detail]
        assert gaps
        assert set(gaps) == {"NVML 2: Invalid Argument"}


@every_box
def test_peer_access_goes_both_ways_and_follows_the_links(box: Box) -> None:
    source = committed(box)
    ends = links(source, box)
    for a, b in combinations((gpu.bdf for gpu in box.gpus), 2):
        for index in range(3):
            there, back = (source.nvml("nvmlDeviceGetP2PStatus", f"{x} {y}", index) for x, y in ((a, b), (b, a)))
            assert there == back or {type(there), type(back)} == {Missing}
        to_gpus = not ends[a].keys().isdisjoint(ends)  # through NVSwitches every GPU reaches every other
        if to_gpus and not ends[a].keys() & {b, *ends[b]}:
            assert source.nvml("nvmlDeviceGetP2PStatus", f"{a} {b}", 0) != 0


@every_box
def test_common_ancestors_are_those_of_the_published_matrix(box: Box) -> None:
    source = committed(box)
    seen: list[Json | Missing] = [
        source.nvml("nvmlDeviceGetTopologyCommonAncestor", f"{a.bdf} {b.bdf}") for a, b in combinations(box.gpus, 2)
    ]
    expected = {
        "dgx-1-p100": {10: 4, 30: 8, 50: 16}, "dgx-1-v100": {10: 4, 30: 8, 50: 16}, "dgx-station-v100": {10: 2, 30: 4},
        "k80-x8": {0: 4, 20: 4, 30: 4, 50: 16}, "dgx-a100": {20: 4, 50: 24}, "dgx-a100-80": {20: 4, 50: 24},
        "dgx-2": {10: 8, 20: 16, 40: 32, 50: 64},
        **{name: {40: 12, 50: 16} for name in ("dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "hgx-h100")},
        "gb200-nvl72": {40: 2, 50: 4}, "gb300-nvl72": {40: 2, 50: 4}, "gh200": {}, "geforce-x4": {30: 6},
        "l40s-x8": {10: 4, 40: 8, 50: 16},
        "pcie-x4": {10: 2, 30: 4}, "pcie-x8": {10: 4, 30: 8, 50: 16},
        "dgx-station-a100": {30: 1, 40: 9}, "big-sur": {10: 4, 30: 8, 50: 16}, "vm-h100-x8": {30: 28}, "vgpu-l40s": {},
    }  # fmt: skip
    assert Counter(map(str, seen)) == {str(level): count for level, count in expected[box.name].items()}


@every_box
def test_config_space_says_what_the_files_say(box: Box) -> None:
    answers, placed = answers_of(box)
    for bdf, one in placed.items():
        space, base = answers.data[f"{DEVICES}/{bdf}/config"], f"{DEVICES}/{bdf}"
        names = ("vendor", "device", "class", "current_link_width")
        files = {name: answers.texts.get(f"{base}/{name}") for name in names}
        assert files["vendor"] == f"0x{int.from_bytes(space[:2], 'little'):04x}\n"
        assert files["device"] == f"0x{int.from_bytes(space[2:4], 'little'):04x}\n"
        assert files["class"] == f"0x{int.from_bytes(space[9:12], 'little'):06x}\n"
        if one.function.link is not None:
            status = int.from_bytes(space[EXPRESS + 0x12 : EXPRESS + 0x14], "little")
            assert files["current_link_width"] == f"{status >> 4 & 0x3F}\n"
        parent = placed.get(one.path[-2])
        if parent is not None:
            above = answers.data[f"{DEVICES}/{parent.bdf}/config"]
            assert above[0x19] == int(bdf[5:7], 16)
        for bridge in one.path[1:-1]:
            first, last = answers.data[f"{DEVICES}/{bridge}/config"][0x19:0x1B]
            assert first <= int(bdf[5:7], 16) <= last


@every_box
def test_bus_numbers_and_addresses_are_given_out_once(box: Box) -> None:
    functions = place(box.roots)
    assert len({one.bdf for one in functions}) == len(functions)
    buses = [(one.bdf, one.function.secondary) for one in functions if one.function.kind in BRIDGES]
    assert len({(bdf[:4], bus) for bdf, bus in buses}) == len(buses)
    assert not {(bdf[:4], bus) for bdf, bus in buses} & {(root.domain, int(root.bus, 16)) for root in box.roots}
    regions = sorted(region for one in functions for region in one.regions.values())
    assert all(before[1] < after[0] for before, after in pairwise(regions))
    by_bdf = {one.bdf: one for one in functions}
    for one in functions:
        for first, last in one.regions.values():
            for bridge in (by_bdf[bdf] for bdf in one.path[1:-1]):
                windows = (bridge.window, bridge.wide_window)
                assert any(window and window[0] <= first and last <= window[1] for window in windows)


@every_box
def test_infiniband_devices_belong_to_adapters_and_are_up(box: Box) -> None:
    source = committed(box)
    for hca in box.hcas:
        base = f"/sys/class/infiniband/{hca.name}"
        assert source.link(f"{base}/device") == f"../../../{full(hca.at)}"
        if not hca.bridge:
            assert text(source, f"{base}/ports/1/state") == "4: ACTIVE"
        assert text(source, f"{DEVICES}/{full(hca.at)}/class") == ("0x020000" if hca.ethernet else "0x020700")


@every_box
def test_a_minute_later_only_traffic_has_grown(box: Box) -> None:
    head = json.loads((FOLDER / f"{box.name}.json").read_text(encoding="utf-8"))
    moments = head["later"]
    assert [moment["at_s"] for moment in moments] == [AFTER_S]
    for line, group in moments[0]["facts"].items():
        assert set(group) == {"text"}
        for name, later in group["text"].items():
            assert name.startswith(("port_rcv_", "port_xmit_", "unicast_", "rx_"))
            assert "error" not in name
            assert int(later) > int(head["facts"][line]["text"][name])


@every_box
def test_replaying_the_file_gives_the_wiring_of_the_made_machine(box: Box) -> None:
    snapshot = survey(committed(box), WIRING)
    assert not isinstance(snapshot.gpu, Missing)
    assert [gpu.bdf for gpu in snapshot.gpu.gpus] == [gpu.bdf for gpu in box.gpus]
    assert not isinstance(snapshot.pci, Missing)
    placed = {one.bdf: one for one in place(box.roots)}
    for function in snapshot.pci:
        assert function.path == placed[function.bdf].path
        assert function.numa_node == placed[function.bdf].node
