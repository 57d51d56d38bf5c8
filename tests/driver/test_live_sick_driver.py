"""A driver that hangs, crashes, errs or is not there: ``topo`` shows every PCI path in time, and says what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from clock import SPARE
from live_box import Box, Ran, finished, gpu_bdfs
from sample import swept

from dgxcheck.facts.missing import Json

SLACK = 1.0
"""Seconds beyond the deadline that a command may take."""
START = ("nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
CALLS = (*START, "nvmlDeviceGetName", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetTopologyCommonAncestor")
OF_ONE_GPU = CALLS[2:]
Served = Callable[..., Box]


def members(document: dict[str, Json], key: str) -> list[dict[str, Json]]:
    found = document[key]
    assert isinstance(found, list)
    return [member for member in found if isinstance(member, dict)]


def by_bdf(document: dict[str, Json], key: str) -> dict[frozenset[str], Json]:
    """One column of the links, by the bus ids of both ends."""
    bdf = {str(device["name"]): str(device["bdf"]) for device in members(document, "devices")}
    return {frozenset((bdf[str(each["a"])], bdf[str(each["b"])])): each[key] for each in members(document, "links")}


def notes(document: dict[str, Json]) -> str:
    found = document["notes"]
    assert isinstance(found, list)
    return "\n".join(map(str, found))


def sick(box: Box, library: Path, fault: str, deadline: float) -> dict[str, Json]:
    """``topo -m`` with a fault; complete in its PCI part and in time, whatever the driver does."""
    return all_sick(box, library, [fault], deadline)[0]


def all_sick(
    box: Box, library: Path, faults: Sequence[str], deadline: float, at_once: int = 2
) -> list[dict[str, Json]]:
    """The same for several faults, some at once: most of the time a sick driver is waited for."""
    if len(faults) > at_once:
        head = all_sick(box, library, faults[:at_once], deadline, at_once)
        return head + all_sick(box, library, faults[at_once:], deadline, at_once)
    argv = ("topo", "-m", "--format", "json", "--deadline", f"{deadline:g}")
    running = [box.start(box.environment(library, fault), *argv) for fault in faults]
    return [checked(box, fault, finished(each), deadline) for fault, each in zip(faults, running, strict=True)]


def checked(box: Box, fault: str, ran: Ran, deadline: float) -> dict[str, Json]:
    assert ran.seconds < deadline + SLACK + SPARE, fault
    assert ran.err == "", fault
    document, healthy = ran.json, box.recorded("topo", "-m", "--format", "json").json
    assert by_bdf(document, "pci") == by_bdf(healthy, "pci"), fault
    assert "unasked" not in ran.out, fault
    if any(link["nvlinks"] is None for link in members(document, "links")):
        assert ran.code == 3, fault
    return document


@pytest.mark.in_ci
@pytest.mark.parametrize(("gpus", "at_once"), swept([(1, 4), (3, 3), (8, 2)], [(3, 3)]))
def test_any_one_call_hangs_for_every_gpu(served: Served, standin: Path, gpus: int, at_once: int) -> None:
    box = served("dgx-1-v100", gpus)
    documents = all_sick(box, standin, [f"hang {call}" for call in CALLS], 4, at_once)
    init, count, handle, _, state, _ = map(notes, documents)
    first = gpu_bdfs(box.lines)[0]
    # "no answer for 1 s"; where the test machine is slow, "not answered within the deadline of 4 s"
    assert "nvmlInit: no" in init
    assert "nvmlDeviceGetCount: no" in count
    assert "nvmlDeviceGetHandleByIndex 0: no" in handle
    assert f"nvmlDeviceGetNvLinkState {first} 0: no" in state


@pytest.mark.parametrize(("gpus", "bad", "calls"), swept([(3, 1, OF_ONE_GPU[1:3]), (8, 6, OF_ONE_GPU)], 2))
def test_any_one_call_hangs_for_one_gpu(
    served: Served, standin: Path, gpus: int, bad: int, calls: Sequence[str]
) -> None:
    box = served("dgx-1-v100", gpus)
    documents = all_sick(box, standin, [f"hang {call} {bad}" for call in calls], 5)
    for call, document in zip(calls, documents, strict=True):
        check_one_bad(box, document, call, bad)


@pytest.mark.in_ci
@pytest.mark.parametrize("gpus", swept([1, 3, 8], 3, first=1))
def test_any_one_call_crashes_for_every_gpu(served: Served, standin: Path, gpus: int) -> None:
    documents = all_sick(served("dgx-1-v100", gpus), standin, [f"crash {call}" for call in CALLS], 12)
    for call, document in zip(CALLS, documents, strict=True):
        if call in START or call == "nvmlDeviceGetNvLinkState":
            assert "died: SIGSEGV" in notes(document), call


@pytest.mark.in_ci
def test_any_one_call_crashes_for_one_gpu(served: Served, standin: Path) -> None:
    box = served("dgx-1-v100", 8)
    calls = ("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetNvLinkState")
    documents = all_sick(box, standin, [f"crash {call} 6" for call in calls], 12)
    for call, document in zip(calls, documents, strict=True):
        check_one_bad(box, document, call, 6)


def check_one_bad(box: Box, document: dict[str, Json], call: str, bad: int) -> None:
    """All NVLinks are known, for the other ends name those of the bad GPU, and every other GPU has its name."""
    bdfs = gpu_bdfs(box.lines)
    assert by_bdf(document, "nvlinks") == by_bdf(box.recorded("topo", "--format", "json").json, "nvlinks")
    uuid = {device["bdf"]: device["uuid"] for device in members(document, "devices") if device["kind"] == "gpu"}
    for bdf in bdfs:
        known = box.lines[f"nvml nvmlDeviceGetUUID {bdf}"][""]
        assert uuid[bdf] == (None if bdf == bdfs[bad] and call == START[2] else known)
    if call in ("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetNvLinkState"):
        assert call in notes(document), call


@pytest.mark.in_ci
@pytest.mark.parametrize(("gpus", "call"), [(1, "nvmlDeviceGetNvLinkState"), *((3, call) for call in OF_ONE_GPU)])
def test_what_one_gpu_did_not_answer_is_told(served: Served, standin: Path, gpus: int, call: str) -> None:
    box = served("dgx-1-v100", gpus)
    ran = box.live(box.environment(standin, f"crash {call} {gpus // 2}"), "topo", "-m")
    assert ran.code == 3
    assert call in ran.out
    assert "died: SIGSEGV" in ran.out


def test_without_a_list_of_gpus_they_are_numbered_in_bus_order(served: Served, standin: Path) -> None:
    box = served("dgx-1-v100", 3)
    document = sick(box, standin, "crash nvmlDeviceGetCount", 8)
    assert [gpu["name"] for gpu in members(document, "devices") if gpu["kind"] == "gpu"] == ["GPU0", "GPU1", "GPU2"]


@pytest.mark.parametrize("code", [15, 16, 999])
def test_a_gpu_without_a_handle(served: Served, standin: Path, code: int) -> None:
    box = served("dgx-1-v100", 8)
    document = sick(box, standin, f"error {code} nvmlDeviceGetHandleByIndex 3", 8)
    check_one_bad(box, document, START[2], 3)
    assert f"nvmlDeviceGetHandleByIndex 3: NVML {code}" in notes(document)


def test_a_lost_gpu_answers_nothing(served: Served, standin: Path) -> None:
    box = served("dgx-1-v100", 8)
    document = sick(box, standin, "error 15 * 3", 8)
    assert by_bdf(document, "nvlinks") == by_bdf(box.recorded("topo", "--format", "json").json, "nvlinks")
    assert "NVML 15: GPU is lost" in notes(document)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("error 18 nvmlInit", "NVML 18: library and kernel module differ in version"),
        ("error 9 nvmlInit", "NVML 9: driver not loaded"),
        ("error 999 nvmlInit", "NVML 999: unknown error"),
        ("error 4 nvmlInit", "NVML 4: no permission"),
    ],
)
def test_nvml_lets_nobody_in(served: Served, standin: Path, fault: str, why: str) -> None:
    box = served("dgx-1-v100", 8)
    document = sick(box, standin, fault, 8)
    assert f"nvmlInit: {why}" in notes(document)
    text = box.live(box.environment(standin, fault), "topo", "-m")
    assert text.code == 3
    assert text.out.startswith(f"NVLink is unknown (nvmlInit: {why}")
    assert text.out.partition("\n")[0].endswith("): showing PCI paths.")
    assert all(link["nvlinks"] is None for link in gpu_links(document))


def gpu_links(document: dict[str, Json]) -> list[dict[str, Json]]:
    return [link for link in members(document, "links") if str(link["a"])[:3] == str(link["b"])[:3] == "GPU"]


def test_no_library(served: Served, tmp_path: Path) -> None:
    box = served("dgx-1-v100", 8)
    document = sick(box, tmp_path / "libnvidia-ml.so.1", "", 8)
    assert "nvmlInit: NVML 12: libnvidia-ml.so.1 not found" in notes(document)


@pytest.mark.parametrize(("content", "why"), [(b"junk" * 500, "invalid ELF header"), (b"", "file too short")])
def test_a_library_that_is_there_and_broken_is_not_called_missing(
    served: Served, tmp_path: Path, content: bytes, why: str
) -> None:
    box = served("dgx-1-v100", 8)
    library = tmp_path / "libnvidia-ml.so.1"
    library.write_bytes(content)
    said = notes(sick(box, library, "", 8))
    assert "nvmlInit: libnvidia-ml.so.1 cannot be loaded: " in said
    assert why in said
    assert "not found" not in said


def test_slow_is_not_hung(served: Served, standin: Path) -> None:
    """nvmlInit may take all of the deadline but 3 s: of the default 60 s, a cold box's 15 s are no trouble."""
    box = served("dgx-1-v100", 8)
    ran = box.live(box.environment(standin, "slow 2 nvmlInit"), "topo", "-m", "--deadline", "6")
    assert ran.code == 0, ran.out
    assert 2 < ran.seconds < 6 + SLACK + SPARE
    assert same_matrix(ran, box.recorded("topo", "-m"))


def test_a_slow_call_is_not_hung(served: Served, standin: Path) -> None:
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin, "slow 0.4 nvmlDeviceGetSerial"), "topo", "-m", "--deadline", "8")
    assert ran.code == 0, ran.out
    assert same_matrix(ran, box.recorded("topo", "-m"))


def same_matrix(live: Ran, recorded: Ran) -> bool:
    return live.out.splitlines() == [line for line in recorded.out.splitlines() if not line.startswith("Source: ")]


def test_record_says_how_much_is_missing(served: Served, standin: Path, tmp_path: Path) -> None:
    box = served("dgx-1-v100", 3)
    file = tmp_path / "box.json"
    ran = box.live(box.environment(standin, "hang nvmlDeviceGetTemperature 1"), "record", str(file), "--deadline", "4")
    assert ran.code == 3
    assert ran.seconds < 4 + SLACK + SPARE
    bdf = gpu_bdfs(box.lines)[1]
    assert f"no answer in time: nvml nvmlDeviceGetTemperature {bdf} 0" in ran.err
    text = file.read_text(encoding="utf-8")
    assert '{"detail": "no answer for 1 s", "missing": "timeout"}' in text
    assert "unasked" not in text


def test_two_drivers_that_hang_share_one_deadline(
    served: Served, standin: Path, slow_open: Path, tmp_path: Path
) -> None:
    box = served("dgx-1-v100", 3)
    preload = {"LD_PRELOAD": str(slow_open), "SLOW_OPEN": "/ports/1/rate", "XDG_RUNTIME_DIR": str(tmp_path)}
    given = box.environment(standin, "hang nvmlDeviceGetTemperature", **preload)
    ran = box.live(given, "record", str(tmp_path / "box.json"), "--deadline", "3")
    assert ran.code == 3
    assert ran.seconds < 3 + SLACK + SPARE
    assert "no answer in time: " in ran.err


def test_list_shows_the_gpus_that_answered(served: Served, standin: Path) -> None:
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin, "hang nvmlDeviceGetSerial 2"), "list", "--deadline", "4")
    assert ran.code == 3
    healthy = box.recorded("list").out.splitlines()
    assert [line for line in ran.out.splitlines() if line in healthy][:3] == healthy[:3]
    assert f"nvmlDeviceGetSerial {gpu_bdfs(box.lines)[2]}: no answer for 1 s" in ran.out
