"""NVLink and P2P: one fault is reported once, by the check that can name it best."""

from __future__ import annotations

import json
import time
from itertools import combinations
from pathlib import Path

import pytest
from clock import SPARE
from fabric_box import PROFILES, bad, box, findings, said
from test_checks_pcie import grown
from test_health_checks import GPU2, changed

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.nvlink.links import _labels, severity
from dgxcheck.facts.ids import NVLINK_SPEED
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.profiles.library import boards_for
from dgxcheck.profiles.model import Number, Profile, SelectedProfile, Selection
from dgxcheck.settings import Settings

GPU3 = "0000:0b:00.0"
PAIR = f"{GPU2} {GPU3}"
STATE = "nvml nvmlDeviceGetNvLinkState {} {}"
P2P = "nvml nvmlDeviceGetP2PStatus {} {} {}"
DOWN: dict[str, Json] = {STATE.format(GPU2, 3): 0, STATE.format(GPU3, 3): 0}
ALL_DOWN: dict[str, Json] = {STATE.format(GPU2, link): 0 for link in range(6)}
NO_GRAPH = replace(PROFILES["dgx-1-v100"], nvlink_graph="")
NO_LINKS = replace(NO_GRAPH, numbers={})
V100 = PROFILES["dgx-1-v100"]


def ends_at(bdf: str, base: str = "dgx-1-v100") -> dict[str, Json]:
    """Every link of other GPUs to this one, down."""
    return {
        STATE.format(link.bdf, link.link): 0
        for link in box(base).snapshot.nvlink  # type: ignore[union-attr]
        if link.remote_bdf == bdf
    }


@pytest.mark.parametrize(
    ("facts", "reference", "due"),
    [
        (DOWN, V100, {("nvlink.graph", GPU2, "fail")}),
        (DOWN, None, set()),
        (DOWN, NO_GRAPH, {("nvlink.state", GPU2, "fail"), ("nvlink.state", GPU3, "fail")}),
        (DOWN, NO_LINKS, set()),
        ({STATE.format(GPU3, 3): 0}, V100, {("nvlink.symmetry", GPU2, "fail")}),
        ({STATE.format(GPU3, 3): 0}, None, {("nvlink.symmetry", GPU2, "fail")}),
        ({STATE.format(GPU3, 3): 0}, NO_GRAPH, {("nvlink.symmetry", GPU2, "fail")}),
        (ALL_DOWN | ends_at(GPU2), V100, {("nvlink.state", GPU2, "fail")}),
        (ALL_DOWN | ends_at(GPU2), None, set()),
        ({STATE.format(GPU2, 0): {"missing": "denied", "detail": "no"}}, V100, {("nvlink.state", GPU2, "unknown")}),
    ],
)
def test_a_link_that_is_down_is_told_once(
    facts: dict[str, Json], reference: Profile | None, due: set[tuple[str, str, str]], tmp_path: Path
) -> None:
    assert bad(box(changed(tmp_path, facts), reference or ""), "nvlink", "p2p") == due


def test_a_guessed_reference_only_warns(tmp_path: Path) -> None:
    found = box(changed(tmp_path, DOWN), "dgx-1-v100", "gpus")
    assert bad(found, "nvlink") == {("nvlink.graph", GPU2, "warn")}


def test_a_gpu_that_is_gone_is_no_fault_of_links(tmp_path: Path) -> None:
    facts = ends_at("0000:8a:00.0") | {
        "nvml nvmlDeviceGetCount": 7,
        "nvml nvmlDeviceGetHandleByIndex 7": {"missing": "unrecorded"},
    }
    for reference in (V100, NO_GRAPH):
        assert bad(box(changed(tmp_path, facts), reference), "nvlink") == set()


def test_links_that_cannot_be_asked_never_pass(tmp_path: Path) -> None:
    spec = changed(tmp_path, {STATE.format(GPU2, 0): {"missing": "garbled", "detail": "NVML 999"}})
    assert said(box(spec, V100), "nvlink.state", GPU2) == ["unknown"]
    assert said(box(spec, V100), "nvlink.symmetry", PAIR) == ["unknown"]
    spec = changed(tmp_path, {"nvml nvmlInit": {"missing": "absent", "detail": "NVML 12"}})
    for check in ("nvlink.state", "nvlink.graph", "nvlink.symmetry", "nvlink.errors", "p2p.status"):
        assert set(said(box(spec, V100), check)) == {"skip dependency-failed"}


def test_station_links_that_are_not_wired_are_down_rightly() -> None:
    station = box("dgx-station-v100", "dgx-station-v100")
    assert said(station, "nvlink.state") == ["pass"] * 4
    assert said(box("dgx-station-v100", V100, "gpus"), "nvlink.graph") == ["skip no-reference"]
    assert said(box("k80-x8", "k80-x8"), "nvlink.state") == ["skip not-supported"] * 8


def _all(size: int, links: int, odd: int = 0) -> list[list[int]]:
    """Each GPU with as many links to each other one, but for the first pairs."""
    pairs = [*combinations(range(size), 2)][:odd]
    return [[0 if a == b else links - ((min(a, b), max(a, b)) in pairs) for b in range(size)] for a in range(size)]


@pytest.mark.parametrize(("found", "most", "due"), [
    (_all(4, 2), 0, (0, 1, 2, 3)), (_all(3, 2), 0, (0, 1, 2)), (_all(5, 2), 0, None), (_all(4, 2, 1), 0, None),
    (_all(4, 2, 1), 1, (0, 1, 2, 3)), (_all(4, 2, 3), 2, None),
])  # fmt: skip
def test_gpus_of_a_graph_whose_pairs_are_alike_keep_their_numbers(
    found: list[list[int]], most: int, due: tuple[int, ...] | None
) -> None:
    assert _labels(found, _all(4, 2), most) == due


def test_the_graph_of_another_machine_is_told_at_the_host_and_soon() -> None:
    begun = time.monotonic()
    assert bad(box("dgx-1-p100", V100), "nvlink.graph") == {("nvlink.graph", None, "fail")}
    assert time.monotonic() - begun < SPARE


@pytest.mark.parametrize(
    ("counters", "due"),
    [
        ({"0 0": 1}, "warn"),
        ({"0 1": 1}, "warn"),
        ({"0 1": 2}, "fail"),
        ({"0 2": 1}, "warn"),
        ({"0 3": 1000}, "warn"),
        ({"0 3": 5999}, "warn"),
        ({"0 3": 6000}, "fail"),
        ({"0 0": 0}, "pass"),
        ({str(f"0 {n}"): {"missing": "denied", "detail": "no"} for n in range(5)}, "skip no-permission"),
        ({"0 0": {"missing": "garbled", "detail": "no"}, "0 1": 2}, "fail"),
    ],
)
def test_errors_of_a_link(counters: dict[str, Json], due: str, tmp_path: Path) -> None:
    spec = grown(tmp_path, {f"nvml nvmlDeviceGetNvLinkErrorCounter {GPU2}": counters})
    assert said(box(spec), "nvlink.errors", f"{GPU2} 0") == [due]
    assert said(box(spec), "nvlink.errors", f"{GPU2} 1") == ["pass"]


def test_errors_that_fell_are_a_reset_and_old_ones_no_fault(tmp_path: Path) -> None:
    key = f"nvml nvmlDeviceGetNvLinkErrorCounter {GPU2}"
    for later, due in ((5, "skip no-history"), (7, "pass"), (8, "warn")):
        spec = grown(tmp_path, {key: {"0 0": later}}, {f"{key} 0 0": 7})
        assert said(box(spec), "nvlink.errors", f"{GPU2} 0") == [due]


def test_recoveries_by_configuration(tmp_path: Path) -> None:
    spec = grown(tmp_path, {f"nvml nvmlDeviceGetNvLinkErrorCounter {GPU2}": {"0 1": 1}})
    strict = Settings(thresholds={"nvlink.recoveries": 1})
    assert said(box(spec, settings=strict), "nvlink.errors", f"{GPU2} 0") == ["fail"]


def both(status: int, ways: tuple[int, ...] = (0, 1), a: str = GPU2, b: str = GPU3) -> dict[str, Json]:
    return {P2P.format(x, y, way): status for x, y in ((a, b), (b, a)) for way in ways}


FAR = "0000:8a:00.0"


@pytest.mark.parametrize(
    ("facts", "peer", "due"),
    [
        ({}, GPU3, "pass"),
        (both(1), GPU3, "fail"),
        (both(4), GPU3, "fail"),
        (both(2), GPU3, "fail"),  # an NVLink joins them
        (both(5), GPU3, "fail"),
        (both(6), GPU3, "skip not-supported"),
        (both(3, (2,)), GPU3, "fail"),
        ({P2P.format(GPU2, GPU3, 1): 3}, GPU3, "fail"),
        ({P2P.format(GPU3, GPU2, 0): {"missing": "denied"}}, GPU3, "unknown"),
        ({}, FAR, "pass"),  # another socket: no way is right there
        ({P2P.format(GPU2, FAR, 0): 0}, FAR, "fail"),
    ],
)
def test_p2p(facts: dict[str, Json], peer: str, due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "p2p.status", f"{GPU2} {peer}") == [due]


def worded(spec: str, pair: str) -> str:
    (remedy,) = {
        each.remedy
        for each in findings(box(spec), "p2p.status")
        if each.subject.peer is not None and f"{each.subject.bdf} {each.subject.peer.bdf}" == pair
    }
    return remedy


K80_0, K80_1, K80_2, K80_3 = "0000:06:00.0", "0000:07:00.0", "0000:0a:00.0", "0000:0b:00.0"
K80_SWITCH = "0000:02:00.0"
GUEST: dict[str, Json] = {"text /sys/hypervisor/type": "xen\n"}


def mig(bdf: str) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetMigMode {bdf}": [1, 1]}


def test_the_remedy_of_p2p_is_worded_by_what_joins_the_pair(tmp_path: Path) -> None:
    assert "Xid 74" in worded(changed(tmp_path, both(1)), PAIR)
    remedy = worded("k80-x8-p2p-broken", f"{K80_2} {K80_3}")
    assert "ACS" in remedy
    assert "Xid 74" not in remedy


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        (GUEST | both(1, a=K80_2, b=K80_3), "skip not-visible"),
        (GUEST | both(3, a=K80_2, b=K80_3), "skip not-visible"),
        (GUEST | both(4, a=K80_2, b=K80_3), "fail"),  # disabled by a registry key
        (GUEST, "pass"),
        ({P2P.format(K80_2, K80_3, 0): {"missing": "denied"}}, "unknown"),
        (GUEST | {P2P.format(K80_2, K80_3, 0): {"missing": "denied"}}, "skip no-permission"),
        (mig(K80_2) | both(1, a=K80_2, b=K80_3), "skip not-supported"),
        (mig(K80_3) | both(4, a=K80_2, b=K80_3), "skip not-supported"),
        (mig(K80_0) | both(4, a=K80_2, b=K80_3), "fail"),
    ],
)
def test_p2p_that_a_hypervisor_hides_or_mig_takes(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts, "k80-x8")), "p2p.status", f"{K80_2} {K80_3}") == [due]


@pytest.mark.parametrize(("status", "due"), [(1, "fail"), (5, "skip not-supported")])
def test_nvlink_in_a_guest_is_judged(status: int, due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, GUEST | both(status))), "p2p.status", PAIR) == [due]


@pytest.mark.parametrize(("base", "how", "is_guest", "due"), [
    ("dgx-a100", "gpus", False, Status.FAIL), ("dgx-a100", "gpus", True, Status.WARN),
    ("dgx-1-v100", "gpus", False, Status.WARN), ("dgx-1-v100", "named", False, Status.FAIL),
    ("dgx-a100", "named", True, Status.FAIL),
])  # fmt: skip
def test_all_links_are_wired_from_ampere_on(base: str, how: Selection, is_guest: bool, due: Status) -> None:
    of = box(base)
    host = replace(of.snapshot.known_host, vm="kvm" if is_guest else None)
    choice = SelectedProfile(profile=library.by_name(base), how=how)
    of = replace(of, snapshot=replace(of.snapshot, host=host), choice=choice, boards=boards_for(None))
    assert severity(of, of.gpus[0]) is due


def of_pairs(status: int, *pairs: tuple[str, str]) -> dict[str, Json]:
    return {key: value for a, b in pairs for key, value in both(status, a=a, b=b).items()}


INNER = ((K80_0, K80_1), (K80_2, K80_3))
OUTER = ((K80_0, K80_2), (K80_0, K80_3), (K80_1, K80_2), (K80_1, K80_3))


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        (of_pairs(1, *INNER, *OUTER), {(K80_SWITCH, "")}),
        (of_pairs(1, *OUTER), {(K80_SWITCH, "")}),
        (of_pairs(1, *OUTER[:3]), {(a, b) for a, b in OUTER[:3]}),
        (of_pairs(1, *OUTER[:3]) | of_pairs(3, OUTER[3]), set(OUTER)),  # not alike
        (of_pairs(1, *INNER), set(INNER)),
    ],
)
def test_a_bridge_that_no_pair_gets_past_is_told_once(
    facts: dict[str, Json], due: set[tuple[str, str]], tmp_path: Path
) -> None:
    told = {
        (each.subject.bdf, each.subject.peer.bdf if each.subject.peer else "")
        for each in findings(box(changed(tmp_path, facts, "k80-x8")), "p2p.status")
        if each.status.value == "fail"
    }
    assert told == due


def test_a_gpu_in_mig_mode_has_no_nvlink(tmp_path: Path) -> None:
    down = ALL_DOWN | ends_at(GPU2)
    assert said(box(changed(tmp_path, down), V100), "nvlink.state", GPU2) == ["fail"]
    assert said(box(changed(tmp_path, down | mig(GPU2)), V100), "nvlink.state", GPU2) == ["skip not-supported"]
    assert said(box(changed(tmp_path, mig(GPU2)), V100), "nvlink.state", GPU2) == ["pass"]


XID_74 = "NVRM: Xid (PCI:{}): 74, pid=1, name=x, NVLink: fatal error detected on link 0"


@pytest.mark.parametrize(
    ("counter", "line", "due"),
    [("0 1", XID_74.format("0000:0a:00"), "fail"), ("0 1", XID_74.format("0000:0b:00"), "warn"),
     ("0 0", XID_74.format("0000:0a:00"), "warn"), ("0 1", XID_74.format("0000:0a:00").replace("74", "31"), "warn")],
)  # fmt: skip
def test_one_recovery_with_an_xid_74_fails(counter: str, line: str, due: str, tmp_path: Path) -> None:
    later: dict[str, Json] = {f"nvml nvmlDeviceGetNvLinkErrorCounter {GPU2}": {counter: 1}}
    path = Path(grown(tmp_path, later))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["add"] = {"kmsg 3": f"3600.000000;{line}"}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert said(box(str(path)), "nvlink.errors", f"{GPU2} 0") == [due]


@pytest.mark.parametrize(("errors", "speed", "due"), [
    (25, 53125, "warn"), (26, 53125, "fail"), (26, {"missing": "denied"}, "warn"), (26, 0, "warn"),
])  # fmt: skip
def test_errors_left_after_correction_make_a_rate(errors: int, speed: Json, due: str, tmp_path: Path) -> None:
    """A link of 53.125 GB/s carries 2.55e13 bits within the minute; 1e-12 of them may be wrong."""
    gpu, path = "0000:52:00.0", tmp_path / "rate.json"
    link = f"nvml nvmlDeviceGetFieldValues {gpu}"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-b200",
                                "facts": {f"{link} 3 219": 0, f"{link} 3 {NVLINK_SPEED}": speed},
                                "later": [{"at_s": 60, "facts": {link: {"3 219": errors}}}]}))  # fmt: skip
    assert said(box(str(path)), "nvlink.errors", f"{gpu} 3") == [due]


def test_expected_links_may_come_from_the_profile_alone(tmp_path: Path) -> None:
    four = replace(NO_GRAPH, numbers={"nvlink.links": Number(value=4, source="test")})
    facts: dict[str, Json] = {STATE.format(bdf, link): 0 for bdf, link in ((GPU2, 3), (GPU3, 3), (GPU2, 4), (GPU3, 4))}
    assert said(box(changed(tmp_path, facts), four), "nvlink.state") == ["pass"] * 8


@pytest.mark.parametrize(
    ("model", "which", "required"), [("A100-SXM4-80GB", "all of this model", 12), ("V100-SXM2-32GB", "none down", None)]
)
def test_links_that_a_text_shows_are_all_of_a_model_whose_number_is_known(
    model: str, which: str, required: int | None, tmp_path: Path
) -> None:
    text = f"GPU 0: NVIDIA {model} (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)\n"
    links = "".join(f"\t Link {link}: 25 GB/s\n" for link in range(12))
    (tmp_path / "links.txt").write_text(text + links)
    (found,) = (each for each in assess(str(tmp_path / "links.txt"), Request()).findings if each.id == "nvlink.state")
    assert found.judgement.message == f"12 NVLinks up, {which}"
    assert (found.judgement.measured, found.judgement.expected) == (12, required)


@pytest.mark.parametrize(("model", "up", "status", "message"), [
    ("H100 80GB HBM3", 17, "fail", "17 of 18 NVLinks up (link 17 down), and all of this model are wired on its board"),
    ("H100 80GB HBM3", 0, "warn", "no NVLink up, and all of this model are wired on its board"),
    ("Tesla V100-PCIE-16GB", 3, "unknown", "3 of 18 NVLinks up"),
])  # fmt: skip
def test_links_down_in_the_text_of_one_gpu(model: str, up: int, status: str, message: str, tmp_path: Path) -> None:
    text = f"GPU 0: NVIDIA {model} (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)\n"
    links = "".join(f"\t Link {link}: {'26.562 GB/s' if link < up else '<inactive>'}\n" for link in range(18))
    (tmp_path / "links.txt").write_text(text + links)
    (found,) = (each for each in assess(str(tmp_path / "links.txt"), Request()).findings if each.id == "nvlink.state")
    assert found.status.value == status
    assert found.judgement.message.startswith(message)


@pytest.mark.parametrize(("up", "due"), [
    ((4, 4), "skip skip"), ((4, 5), "warn skip"), ((4, 4, 5), "skip skip skip"), ((4, 5, 5), "warn skip skip"),
    ((4, 3, 5, 5), "warn warn skip skip"), ((4, 3, 4, 5), "skip warn skip skip"),
])  # fmt: skip
def test_links_down_in_a_text_are_judged_where_most_others_have_more(
    up: tuple[int, ...], due: str, tmp_path: Path
) -> None:
    (tmp_path / "links.txt").write_text("".join(
        f"GPU {gpu}: Tesla V100-SXM2-16GB (UUID: GPU-01234567-89ab-cdef-0123-456789abcde{gpu})\n"
        + "".join(f"\t Link {link}: {'25.781 GB/s' if link < its else '<inactive>'}\n" for link in range(6))
        for gpu, its in enumerate(up)
    ))  # fmt: skip
    found = assess(str(tmp_path / "links.txt"), Request()).findings
    assert " ".join(each.status.value for each in found if each.id == "nvlink.state") == due


def test_a_graph_of_like_pairs_needs_no_search() -> None:
    """Sixteen GPUs without NVSwitches that are known: no pair is as in the reference, and that is known at once."""
    sixteen = replace(V100, nvlink_graph="dgx-2")
    begun = time.monotonic()
    assert bad(box("dgx-1-v100", sixteen), "nvlink.graph") == {("nvlink.graph", None, "fail")}
    assert time.monotonic() - begun < SPARE
