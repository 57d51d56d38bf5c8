"""What the checks share, at its limits: what the host hides, gaps of pairs, floods of errors, GPUs for a display."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from read_box import box

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.expected import is_for_display, is_older
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.engine.gaps import common_gpus, involves
from dgxcheck.checks.engine.growth import COUNTER_RESET, DAY_S, MANY, MIN_EVENTS, flaps, flood, or_total
from dgxcheck.checks.engine.host_limits import guests_running, is_assigned, left_out, minors_gone
from dgxcheck.facts.host import Module, Modules
from dgxcheck.facts.kernel_log import NO_LOG, HcaEvent
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.record import replace
from dgxcheck.survey import Snapshot

UNREAD = Missing(Gap.DENIED, "x")


def of(base: str = "dgx-1-v100", **facts: object) -> Box:
    """The box with other facts."""
    found = box(base)
    return replace(found, snapshot=replace(found.snapshot, **facts))


def host(**facts: object) -> Box:
    return of(host=replace(box("dgx-1-v100").snapshot.known_host, **facts))


def with_modules(**uses: int | Missing) -> Box:
    modules = box("dgx-1-v100").snapshot.modules
    assert isinstance(modules, Modules)
    module = Module(name="", loaded=True, state="live", version=UNREAD, refcnt=0)
    rows = tuple(replace(module, name=name, refcnt=number) for name, number in uses.items())
    return of(modules=replace(modules, modules=rows))


def with_minors(*numbers: int) -> Box:
    nvml = box("dgx-1-v100").snapshot.gpu
    assert isinstance(nvml, Nvml)
    gpus = tuple(replace(gpu, minor=minor) for gpu, minor in zip(nvml.gpus, numbers, strict=True))
    return of(gpu=replace(nvml, gpus=gpus))


@pytest.mark.parametrize(("uses", "due"), [
    ({"kvm_intel": 0}, ""), ({"kvm_intel": 1}, "kvm_intel is in use"), ({"kvm_intel": UNREAD}, ""), ({"loop": 1}, ""),
])  # fmt: skip
def test_guests_use_the_module(uses: dict[str, int | Missing], due: str) -> None:
    assert guests_running(with_modules(**uses)) == due


@pytest.mark.parametrize(("last", "due"), [(7, ()), (8, (7,)), (14, tuple(range(7, 14))), (15, ())])
def test_fewer_gpus_are_gone_than_there_are(last: int, due: tuple[int, ...]) -> None:
    assert minors_gone(with_minors(*range(7), last)) == due


@pytest.mark.parametrize(("line", "is_due"), [
    ("numa=off", True), ("numa=on", False), ("numa", False), ("numa=fake=2", True), ("mem=8G", False), (UNREAD, False),
])  # fmt: skip
def test_what_the_command_line_leaves_out(line: str | Missing, is_due: bool) -> None:
    assert any(left_out(host(cmdline=line), ("numa",))) is is_due


@pytest.mark.parametrize(("facts", "is_due"), [
    ({}, False), ({"container": "docker"}, True), ({"vm": "kvm"}, True), ({"vm": UNREAD}, False),
])  # fmt: skip
def test_a_container_or_a_guest_sees_what_it_is_given(facts: dict[str, object], is_due: bool) -> None:
    assert is_assigned(host(**facts)) is is_due


@pytest.mark.parametrize(("pairs", "due"), [
    ("ab", {}), ("ab ac", {"a": 2}), ("ab ac de", {"a": 2}), ("ab ac ad ef eg", {"a": 3, "e": 2}),
])
def test_a_gpu_of_two_pairs_is_the_one(pairs: str, due: dict[str, int]) -> None:
    found = common_gpus({(pair[0], pair[1]): UNREAD for pair in pairs.split()})
    assert {gpu: len(gaps) for gpu, gaps in found.items()} == due


@pytest.mark.parametrize(("where", "is_due"), [
    ("nvmlDeviceGetP2PStatus 0:1 0:2 0", True), ("nvmlDeviceGetName 0:2", True), ("nvmlDeviceGetName 0:1", False),
    ("line 7 of 0:2", False), ("", False),
])  # fmt: skip
def test_a_query_about_a_gpu(where: str, is_due: bool) -> None:
    assert involves(Missing(Gap.LOST, where), "0:2") is is_due


@pytest.mark.parametrize(("up", "count", "others", "due"), [
    (DAY_S, MIN_EVENTS, None, "in the 24 hours since boot"), (DAY_S, MIN_EVENTS - 1, None, None),
    (2 * DAY_S, 2 * MIN_EVENTS, None, "in the 2 days since boot"), (DAY_S * MIN_EVENTS, MIN_EVENTS, None, None),
    (UNREAD, 4 * MANY, None, None), (UNREAD, MANY, [0], None), (UNREAD, MANY + 1, [0], "in all, usual here: 0"),
    (UNREAD, 4 * MANY, [4], None), (UNREAD, 4 * MANY + 1, [4], "in all, usual here: 4"), (UNREAD, 4 * MANY, [], None),
])  # fmt: skip
def test_a_flood_of_errors(up: float | Missing, count: int, others: list[int] | None, due: str | None) -> None:
    assert flood(host(uptime_s=up), count, others, 1, DAY_S) == due


@pytest.mark.parametrize(("growth", "total", "seconds", "due"), [
    (Status.PASS, None, 60, "growth"), (Status.PASS, Status.WARN, 60, "total"),
    (Status.WARN, Status.FAIL, 60, "growth"), (Status.SKIP, Status.PASS, 60, "total"),
    (Status.PASS, Status.WARN, DAY_S, "growth"),
    (Status.SKIP, Status.WARN, DAY_S, "total"),
])  # fmt: skip
def test_new_errors_go_before_old_ones(growth: Status, total: Status | None, seconds: float, due: str) -> None:
    both = Growth(old=Snapshot(), new=Snapshot(), seconds=seconds, how="")
    found = Judgement(total, "total") if total else None
    assert or_total(both, Judgement(growth, "growth"), found).message == due
    assert or_total(both, COUNTER_RESET, found) is (found or COUNTER_RESET)


@pytest.mark.parametrize(("timed", "due"), [(True, 0), (False, 4)])
def test_lines_without_times_are_all_of_this_day(timed: bool, due: int) -> None:
    event = HcaEvent(line="", seconds=0, past=False, bdf="", trouble="link down", module=0, text="")
    lines = [replace(event, seconds=seconds) for seconds in (0.0, 40.0, 80.0, 120.0)]
    machine = host(uptime_s=9 * DAY_S)
    log = replace(NO_LOG, timed=timed)
    assert len(flaps(replace(machine, snapshot=replace(machine.snapshot, kernel_log=log)), lines, 2)) == due


GPU, OTHER, SPARE = "0000:06:00.0", "0000:07:00.0", "0000:8a:00.0"
VGA = 0x030000


def with_gpu(own: dict[str, object], others: dict[str, object]) -> Box:
    """A GPU, and what all others of the box are."""
    found = box("dgx-1-v100")
    gpus = {gpu.bdf: others if gpu.bdf != GPU else own for gpu in found.topology.gpus}
    functions = {bdf: replace(function, **gpus[bdf]) if bdf in gpus else function
                 for bdf, function in found.topology.functions.items()}  # fmt: skip
    return replace(found, topology=replace(found.topology, functions=functions))


@pytest.mark.parametrize(("judge", "own", "others", "due"), [
    (is_for_display, {"class_code": VGA, "device": 7}, {}, True),
    (is_for_display, {"class_code": VGA}, {}, False),  # a model of its own has it no more
    (is_for_display, {"device": 7}, {}, False),
    (is_for_display, {"class_code": VGA, "device": 7, "driver": None}, {"driver": "nouveau"}, False),
    (is_older, {"device": 7, "driver": None}, {"device": 8}, True),
    (is_older, {"device": 8, "driver": None}, {"device": 8}, False),
    (is_older, {"device": 9, "driver": None}, {"device": 8}, False),
    (is_older, {"device": UNREAD}, {"device": 8}, False),
    (is_older, {"device": 7, "driver": None}, {"device": 8, "driver": None}, False),
    (is_older, {"device": 7, "driver": None}, {"device": UNREAD}, False),
])  # fmt: skip
def test_a_gpu_beside_those_that_compute(
    judge: Callable[[Box, str], bool], own: dict[str, object], others: dict[str, object], due: bool
) -> None:
    assert judge(with_gpu(own, others), GPU) is due
