"""When the machine is judged: on time, soon after trouble, and rarely where each judgement loads the driver."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from watched import Listener, in_log

from dgxcheck.assessment import Request, assess
from dgxcheck.watch.children import COUNTERS, JUDGEMENT, NVML_EVENTS, Answer, Children
from dgxcheck.watch.dispatcher import Dispatcher
from dgxcheck.watch.judgement_child import document, judged
from dgxcheck.watch.judging import LEAST_BETWEEN_S, PERSISTENCE_OFF_S, SETTLED_S, SOON_S, Judging
from dgxcheck.watch.log_events import xid_event
from dgxcheck.watch.loop import Watch
from dgxcheck.watch.memory import BadFinding, LastJudgement, compared
from dgxcheck.watch.plan import Plan


class Started(Children):
    """Notes what is started, and starts nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Mapping[str, Any]] = []
        self.resident = False

    def start(self, module: str, plan: Mapping[str, Any], silence_s: float) -> bool:
        assert module == JUDGEMENT
        self.plans.append(plan)
        return True

    def running(self, module: str) -> bool:
        return module == NVML_EVENTS and self.resident


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found)
    return found


def judging(plan: Plan) -> tuple[Judging, Started, Listener]:
    listener, workers = Listener(), Started()
    return Judging(plan, Dispatcher(plan.state, [listener]), workers), workers, listener


def test_a_machine_that_boots_settles_first(clock: Clock) -> None:
    judge, workers, _ = judging(Plan())
    for clock.now, started in ((SETTLED_S - 1, 0), (SETTLED_S, 1)):
        judge.turn()
        assert len(workers.plans) == started


def answer(verdict: str = "pass", persistence: bool | None = True) -> dict[str, Any]:
    return {"verdict": verdict, "findings": {}, "passed": [], "acknowledged": [], "unjudged": [], "uuids": {},
            "persistence": persistence}  # fmt: skip


def after(judge: Judging, clock: Clock, seconds: float, workers: Started) -> int:
    """How many are started within this time, looked at every second."""
    before = len(workers.plans)
    for _ in range(int(seconds)):
        clock.now += 1
        judge.turn()
    return len(workers.plans) - before


def test_it_is_judged_at_once_and_then_on_time(clock: Clock) -> None:
    judge, workers, listener = judging(Plan(judge_s=300, state="/var/lib/dgxcheck/watch.json"))
    judge.turn()
    assert [plan["state"] for plan in workers.plans] == ["/var/lib/dgxcheck/watch-counters.json"]
    judge.take(answer())
    assert after(judge, clock, 299, workers) == 0
    assert after(judge, clock, 301, workers) == 2
    assert [event.text for event in listener.events("verdict")] == ["verdict pass"]


def test_it_is_never_judged_where_that_is_not_wanted(clock: Clock) -> None:
    judge, workers, _ = judging(Plan(judge_s=0))
    judge.soon()
    assert after(judge, clock, 1000, workers) == 0
    assert judge.due is None


def test_after_trouble_it_is_judged_soon_but_not_all_the_time(clock: Clock) -> None:
    judge, workers, _ = judging(Plan(judge_s=3600))
    judge.turn()
    clock.now += LEAST_BETWEEN_S
    judge.soon()
    assert after(judge, clock, SOON_S + 1, workers) == 1
    for _ in range(10):
        judge.soon()
        assert after(judge, clock, 5, workers) == 0
    assert after(judge, clock, LEAST_BETWEEN_S, workers) == 1


def test_trouble_while_it_is_judged_is_judged_too(clock: Clock) -> None:
    judge, workers, _ = judging(Plan(judge_s=3600))
    judge.turn()
    clock.now += 5
    judge.soon()
    judge.take(answer())
    assert after(judge, clock, LEAST_BETWEEN_S, workers) == 1
    judge.take(answer())
    assert after(judge, clock, 3500, workers) == 0


@pytest.mark.parametrize(("name", "soon"), [("aer fatal 0000:06:00.0", True), ("aer correctable 0000:06:00.0", False)])
def test_counters_that_grew_are_trouble_as_records_of_the_log_are(name: str, soon: bool, clock: Clock) -> None:
    watch = Watch(Plan(judge_s=3600), [])
    watch._judging._next = clock.now + 3600
    for value in (1, 2):
        watch._take(Answer(COUNTERS, "reading", {name: value}))
    assert (watch._judging.due == clock.now + SOON_S) is soon


def test_an_xid_of_a_gpu_that_was_replaced_is_no_earlier_one(clock: Clock) -> None:
    bdf, watch = "0000:06:00.0", Watch(Plan(), [])
    for boot, (uuid, before) in enumerate((("GPU-a", 0), ("GPU-a", 1), ("GPU-b", 0), ("GPU-b", 1))):
        watch._dispatcher.memory.of_boot(str(boot))
        watch._judging.take(answer() | {"uuids": {bdf: uuid}})
        assert watch._times(bdf, "74") == before
        watch._tell([xid_event(bdf, 74, "", 1)])
    uuids = document(assess("dgx-1-v100", Request()), [])["uuids"]
    assert isinstance(uuids, dict)
    assert len({*uuids.values()}) == len(uuids) == 8


@pytest.mark.parametrize(("message", "soon"), [
    ("EXT4-fs (sda1): Remounting filesystem read-only", True),
    ("md/raid1:md0: Disk failure on sda2, disabling device.", True),
    ("mlx5_core 0000:05:00.0: Port module event: module 0, Cable unplugged", False),
])  # fmt: skip
def test_a_warning_of_the_log_is_soon_judged(message: str, soon: bool, clock: Clock) -> None:
    watch = Watch(Plan(judge_s=3600), [])
    watch._judging._next = clock.now + 3600
    watch._tell(in_log(message))
    assert (watch._judging.due == clock.now + SOON_S) is soon


def test_what_became_of_its_own_state_is_said(clock: Clock) -> None:
    judge, _, listener = judging(Plan())
    judge.take(answer() | {"trouble": "watch-counters.json: damaged"})
    assert [(event.code, event.status.value) for event in listener.events("note")] == [("state", "warn")]
    assert [event.text for event in listener.events("verdict")] == ["verdict pass"]


@pytest.mark.parametrize("text", ["", "{", '{"schema": "dgxcheck/recording/1", "facts": {}}'])
def test_a_damaged_state_is_begun_again(text: str, tmp_path: Path) -> None:
    path = tmp_path / "watch-counters.json"
    path.write_text(text)
    plan: dict[str, Any] = {"root": "/", "profile": "none", "config": None, "deadline": 2.0, "known": []}
    plan["state"] = str(path)
    trouble = [judged(plan).get("trouble") for _ in range(2)]
    assert trouble[0] == (f"{path}: not a state file of dgxcheck health, or a damaged one; moved to"
                          " watch-counters.json.damaged, and begun again")  # fmt: skip
    assert trouble[1] == ""
    assert (tmp_path / "watch-counters.json.damaged").read_text() == text


@pytest.mark.parametrize(("box", "key", "due"), [
    ("dgx-b200", "driver.fabric", "passed"),  # of the whole host while no GPU is registered
    ("big-sur", "gdr.acs/0000:83:08.0", "passed"),
    ("dgx-1-v100-no-nvml", "nvlink.errors/0000:0b:00.0/2", "unjudged"),
    ("dgx-1-v100-no-nvml", "nvlink.graph/0000:0a:00.0/0000:0b:00.0", "unjudged"),
    ("dgx-1-v100-acs-redirect", "gdr.acs/0000:04:08.0", "passed"),  # another port redirects
    ("dgx-1-v100-acs-redirect", "gdr.acs/0000:ff:08.0", None),
    ("dgx-1-v100", "network.hca-placement/0000:81:00.0", None),  # no such device
])  # fmt: skip
def test_a_finding_is_over_as_its_check_passes_for_more_or_less(box: str, key: str, due: str | None) -> None:
    answer = document(assess(box, Request()), [key])
    assert [name for name in ("passed", "unjudged") if key in answer[name]] == ([due] if due else [])  # type: ignore[operator]


@pytest.mark.parametrize(("box", "key", "is_event"), [
    ("dgx-1-v100-aer-flood", "kernel.aer/0000:06:00.0", False),  # each line is for information
    ("dgx-1-v100-xid-13-often", "kernel.xid/0000:0a:00.0", False),
    ("dgx-1-v100-port-module-hot", "kernel.port-module/0000:0c:00.0/1", True),
])  # fmt: skip
def test_what_no_record_of_the_log_says_by_itself_is_a_finding(box: str, key: str, is_event: bool) -> None:
    found = document(assess(box, Request()), [])["findings"]
    assert found[key]["log"] is is_event  # type: ignore[index,call-overload]


def test_a_finding_that_the_site_acknowledges_is_still_there(tmp_path: Path) -> None:
    key, config = "kernel.xid/0000:0a:00.0", tmp_path / "site.toml"
    of_site = f'check = "kernel.xid"\ndevice = "{key[11:]}"\nreason = "known"\nexpiry = "2999-01-01"\n'
    config.write_text(f"[[acknowledged]]\n{of_site}")
    found = document(assess("dgx-1-v100-xid-13-often", Request(config=str(config))), [key])
    assert found["acknowledged"] == found["passed"] == [key]
    _, (event, *_) = compared(LastJudgement(findings={key: BadFinding("warn", "0000:0a:00.0", "Xid 13")}), found)
    assert (event.kind, event.text) == ("cleared", "acknowledged: kernel.xid: Xid 13")


def test_a_record_of_the_host_announces_no_other_finding_of_the_host(tmp_path: Path) -> None:
    messages = ("EDAC MC0: 1 UE memory read error on DIMM0 (channel:0)", "nvidia-uvm: frobnicator failed (0x24)")
    add = {f"kmsg {place}": f"{3600 * place}.0;{message}" for place, message in enumerate(messages, 40)}
    base: dict[str, Any] = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": {}, "add": add}
    (tmp_path / "box.json").write_text(json.dumps(base))
    found: Any = document(assess(str(tmp_path / "box.json"), Request()), [])["findings"]
    assert {key: each["log"] for key, each in found.items() if key.startswith("kernel.")} == {
        "kernel.memory/mc0": True, "kernel.driver-errors/nvidia driver": False,
    }  # fmt: skip


def test_without_persistence_mode_it_is_judged_rarely_and_that_is_said_once(clock: Clock) -> None:
    judge, workers, listener = judging(Plan(judge_s=300))
    judge.turn()
    judge.take(answer(persistence=False))
    judge.soon()
    assert after(judge, clock, PERSISTENCE_OFF_S - 1, workers) == 0
    assert after(judge, clock, 2, workers) == 1
    judge.take(answer(persistence=False))
    (note,) = listener.events("note")
    assert note.code == "persistence"
    judge.take(answer(persistence=True))
    assert after(judge, clock, 301, workers) == 1


def test_a_worker_that_stays_in_nvml_keeps_the_driver_loaded(clock: Clock) -> None:
    judge, workers, listener = judging(Plan(judge_s=300))
    workers.resident = True
    judge.turn()
    judge.take(answer(persistence=False))
    assert after(judge, clock, 301, workers) == 1
    assert listener.events("note") == []


def test_what_cannot_be_judged_is_said(clock: Clock) -> None:
    judge, _, listener = judging(Plan())
    judge.take({"error": "config.toml: no such check"})
    assert [event.status.value for event in listener.events("note")] == ["unknown"]
