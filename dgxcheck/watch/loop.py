"""The loop of the watch: it waits for the kernel log, devices, workers and timers, and reports what is new."""

from __future__ import annotations

import os
import select
import time
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.bdf import is_bdf
from dgxcheck.measure.burn_in.hot_plug import Change, HotPlug
from dgxcheck.rootfs import decode, read_bytes
from dgxcheck.source import state_file
from dgxcheck.watch import children
from dgxcheck.watch.children import Answer, Children
from dgxcheck.watch.dispatcher import Dispatcher, Sink
from dgxcheck.watch.event import Event
from dgxcheck.watch.judging import Judging
from dgxcheck.watch.log_events import xid_event
from dgxcheck.watch.log_follower import LogFollower, open_kmsg
from dgxcheck.watch.memory import LastJudgement
from dgxcheck.watch.plan import Plan
from dgxcheck.watch.readings import changes, gone, is_blind, merged, unlisted, watched
from dgxcheck.watch.systemd import Notifier

LONGEST_S = 60.0
_KMSG, _BOOT_ID = "/dev/kmsg", "/proc/sys/kernel/random/boot_id"


class Watch:
    """One run. ``stop`` may be called from a signal handler."""

    def __init__(self, plan: Plan, sinks: Sequence[Sink]) -> None:
        self._plan = plan
        self._root = plan.root.rstrip("/")
        self._workers = Children()
        self._dispatcher = Dispatcher(plan.state, sinks)
        self._judging = Judging(plan, self._dispatcher, self._workers)
        self._notifier = Notifier()
        self._log: LogFollower | None = None
        self._plug = HotPlug(SUBSYSTEMS, "kernel")
        self._logged: Counter[tuple[str, str]] = Counter()
        self._stopped = False
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def stop(self) -> None:
        """End the loop soon."""
        self._stopped = True
        with suppress(OSError):
            os.write(self._wake, b".")

    def run(self) -> None:
        """Watch until ``stop``."""
        try:
            self._begin()
            while not self._stopped:
                self._turn()
                self._wait()
        finally:
            self._notifier.say("STOPPING=1")
            self._workers.stop()
            self._dispatcher.save(now=True)
            if self._log is not None:
                self._log.close()
            os.close(self._woken)
            os.close(self._wake)

    def _begin(self) -> None:
        try:
            boot_id = decode(read_bytes(self._root + _BOOT_ID)).strip()
        except OSError:
            boot_id = ""
        self._dispatcher.begin(boot_id)
        if not self._plan.judge_s:
            self._dispatcher.memory.judged = LastJudgement()  # which nothing keeps up to date
        try:
            self._log = LogFollower(open_kmsg(self._root + _KMSG), self._dispatcher.memory.sequence, self._times)
        except OSError as error:
            self._log_closed(error)
        if self._plug.trouble:
            self._dispatcher.note("hot-plug", self._plug.trouble)

    def _turn(self) -> None:
        self._follow_log()
        self._see_devices()
        for answer in self._workers.take():
            if isinstance(answer, Answer):
                self._take(answer)
            else:
                self._dispatcher.note(children.NAMES[answer.module], answer.text, Status.UNKNOWN)
        if self._caught_up:
            self._start_workers()
        self._dispatcher.turn()
        self._dispatcher.save()
        if self._caught_up:
            self._notifier.alive()

    @property
    def _caught_up(self) -> bool:
        return self._log is None or self._log.caught_up

    def _wait(self) -> None:
        """Until something is to be read or a timer is due."""
        if not self._caught_up or self._stopped:
            return
        poll = select.poll()
        log = self._log
        readable = [self._woken, *([log.fd] if log is not None else []), self._plug.fileno()]
        for fd in readable:
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        self._workers.watch(poll)
        timers = (log.due if log is not None else None, self._dispatcher.due, self._judging.due, self._notifier.due)
        due = min(timer for timer in timers if timer is not None)
        poll.poll(min(max(0.01, due - time.monotonic()), LONGEST_S) * 1000)

    def _follow_log(self) -> None:
        if (log := self._log) is None:
            return
        try:
            events = [*log.events()]
        except OSError as error:
            log.close()
            self._log = None
            self._log_closed(error)
            return
        for event in events:
            if event.kind == "pcie-error":
                self._logged[event.bdf, event.code] += event.count
        memory = self._dispatcher.memory
        memory.lost += sum(event.count for event in events if event.kind == "lost")
        if log.sequence != memory.sequence:
            memory.sequence = log.sequence
            self._dispatcher.changed()
        self._tell(events)

    def _tell(self, events: Sequence[Event]) -> None:
        """Report events; what is no mere information is soon followed by a judgement, which explains it."""
        if self._dispatcher.tell(events) is not Status.PASS:
            self._judging.soon()

    def _log_closed(self, error: OSError) -> None:
        why = error.strerror or "no reason given"
        self._dispatcher.note("kernel log", f"kernel log not readable: {why}; Xids come from NVML", Status.UNKNOWN)

    def _see_devices(self) -> None:
        if found := self._plug.changes():
            self._report_devices(found)
        if self._plug.trouble and self._plug.lost:
            trouble, self._plug = self._plug.trouble, HotPlug(SUBSYSTEMS, "kernel")
            again = self._plug.trouble or "started again, some may be missing"
            self._dispatcher.note("hot-plug", f"{trouble}; {again}", Status.UNKNOWN)

    def _report_devices(self, found: Sequence[Change]) -> None:
        memory = self._dispatcher.memory
        devices = watched(memory.readings)
        self._tell([hot_plug(change, devices) for change in found])
        removed = {change.name for change in found if (change.action, change.subsystem) == ("remove", "pci")}
        memory.readings = unlisted(memory.readings, removed)

    def _start_workers(self) -> None:
        if self._plan.counters_s:
            plan = {"root": self._plan.root, "every_s": self._plan.counters_s}
            self._workers.start(children.COUNTERS, plan, self._plan.counters_s + children.READING_S)
        if self._log is None:
            self._workers.start(children.NVML_EVENTS, {}, children.OPENING_S)
        self._judging.turn()

    def _take(self, answer: Answer) -> None:
        memory = self._dispatcher.memory
        if answer.module == children.COUNTERS:
            if is_blind(memory.readings, answer.value):
                self._dispatcher.note("counters", "link states and error counters cannot be read", Status.UNKNOWN)
            # no event comes where netlink is closed to a container, or where its queue overran
            if removed := sorted(gone(memory.readings, answer.value)):
                self._report_devices([Change("remove", "pci", bdf, bdf) for bdf in removed])
            events = changes(memory.readings, answer.value, self._logged)
            memory.readings = merged(memory.readings, answer.value)
            self._logged.clear()
            self._dispatcher.changed()
            self._tell(events)
        elif answer.module == children.JUDGEMENT:
            self._judging.take(answer.value)
        elif isinstance(answer.value, dict) and "xid" in answer.value:
            bdf, number = str(answer.value["bdf"]), int(answer.value["xid"])
            self._tell([xid_event(bdf, number, "", self._times(bdf, str(number)) + 1)])
        elif isinstance(answer.value, dict):
            why = answer.value.get("detail") or answer.value.get("missing")
            self._dispatcher.note("NVML events", f"Xids are not monitored: {why}", Status.UNKNOWN)

    def _times(self, bdf: str, code: str) -> int:
        """How often an Xid of a GPU was counted before, unless the last time is long ago."""
        tally = self._dispatcher.memory.ledger.tallies.get((bdf, "xid", code))
        return tally.count if tally and state_file.is_recent(tally.last, state_file.now()[1]) else 0


SUBSYSTEMS = ("pci", "infiniband", "drm")


def hot_plug(change: Change, watched: Collection[str]) -> Event:
    """``watched`` are the bus ids of GPUs, NVSwitches and adapters: that anything else goes is no trouble."""
    parts = [part for part in change.path.split("/") if is_bdf(part)]
    bdf = parts[-1] if parts else ""
    device = f"PCI function {bdf}" if change.subsystem == "pci" else f"{change.subsystem} device {change.name}"
    removed = change.action == "remove"
    return Event(
        kind="hot-plug", status=Status.WARN if removed and bdf in watched else Status.PASS, bdf=bdf,
        code=f"{change.action} {change.subsystem}", text=f"{device} {'removed' if removed else 'added'}",
    )  # fmt: skip
