"""A burn-in: every GPU under load for a time, looked at once a second, and stopped where it becomes dangerous."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.measure.burn_in.events import Events, Listener
from dgxcheck.measure.burn_in.hot_plug import HotPlug
from dgxcheck.measure.burn_in.loads import MODULE, LoadWorkers
from dgxcheck.measure.burn_in.plan import Load
from dgxcheck.measure.burn_in.polling import Round, Rounds
from dgxcheck.measure.burn_in.result import SIGNED
from dgxcheck.measure.burn_in.stop_rules import Limits, Stop, of_log
from dgxcheck.measure.burn_in.watch import Watch
from dgxcheck.survey import Snapshot
from dgxcheck.workers import stuck_workers
from dgxcheck.workers.supervisor import LEAST_START_S, Supervisor, timeout

LIBRARY = "libcuda.so.1"
BETWEEN_STARTS_S = 0.5
"""A power supply does not see all GPUs begin at once."""
LISTEN_S = 0.2
LEAVE_S = 5.0
"""Seconds that a load may take to end when it has to."""
SETTLED_S = 5.0


class BurnIn:
    """One run. ``interrupt`` may be called from a signal handler."""

    def __init__(
        self, loads: Sequence[Load], seconds: float, silence_s: float, known: Limits, rounds: Rounds,
        log_before: KernelLog | Missing, listener: Listener, files: Mapping[str, str], library: str = LIBRARY,
    ) -> None:  # fmt: skip
        """``silence_s`` is how long a load may say nothing, ``files`` are counters of PCIe errors by name."""
        self._asked, self._known, self._rounds, self._log = seconds, known, rounds, log_before
        self._files, self._wait_s = files, silence_s or LEAST_START_S
        self._events = Events(listener)
        self._supervisor = Supervisor()
        self._loads = LoadWorkers(loads, seconds, silence_s, library, self._events, self._supervisor)
        self._watch: Watch | None = None
        self._plug = HotPlug()
        self._stop: Stop | None = None
        self._seconds = 0.0
        self._ending = False
        self.last: Round | None = None
        """The last look that gave counters."""
        self.log = log_before
        """The kernel log, as it was last read."""

    def interrupt(self) -> None:
        """End the load at the next chance; ``run`` returns with what was seen."""
        self._end_for(Stop("interrupted", "", "interrupted"))

    def run(self) -> dict[str, Json]:
        """Burn; ``measure burn-in BDF`` of each GPU and ``measure burn-in all``."""
        if (stuck := stuck_workers.stuck(MODULE)) is not None:
            return {"measure burn-in all": timeout(stuck)}
        unseen = f"the kernel log is not watched: {self._log}" if isinstance(self._log, Missing) else ""
        for text in filter(None, (self._plug.trouble, unseen)):
            self._events.note("note", "", text)
        try:
            self._open()
            while self._stop is None and self._events.since() < self._asked:
                self._step()
            self._close()
        finally:
            self._supervisor.stop()
        for read in self._rounds.finish(LEAST_START_S):
            self._take_round(read)
        return self._facts()

    def _open(self) -> None:
        """Nothing is loaded that nobody looks at: the first sample comes first."""
        self._watch = Watch([*self._loads.seen], self._files, self._wait_s, self._known, self._events, self._supervisor)
        while self._watch.first is None and self._stop is None:
            self._listen()
        self._loads.begin(self._watch.busy)
        begin = time.monotonic()
        for number, (bdf, seen) in enumerate(self._loads.seen.items()):
            while self._stop is None and time.monotonic() < begin + number * BETWEEN_STARTS_S:
                self._listen()
            if self._stop is not None:
                return
            seen.first = self._watch.of(bdf)
            if bdf in self._watch.busy:
                seen.start = {"skipped": "busy", "detail": self._watch.busy[bdf]}
            else:
                self._loads.launch(bdf)
        while self._stop is None and self._loads.opening:
            self._listen()
        self._events.begun = time.monotonic()
        self._events.note("started", "", f"GPUs under load: {len(self._loads.workers)}")
        self._rounds.start()

    def _step(self) -> None:
        self._listen()
        for read in self._rounds.since_last():
            self._take_round(read)
        for action, bdf in self._plug.events():
            self._events.note("hot-plug", bdf, f"PCI function {bdf}: {action}", "warn")
            if action == "remove" and bdf in self._loads.seen:
                self._end_for(Stop("vanished", bdf, "its PCI function was removed"))
        if not self._loads.workers:
            self._end_for(Stop("no-load", "", "no GPU takes any load"))
        self._events.listener.moment(self._events.since(), self._loads.doing)

    def _listen(self) -> None:
        """Take in what the workers say, for a moment."""
        watch = self._watch
        met = self._supervisor.next_event(time.monotonic() + LISTEN_S)
        self._loads.take()
        if watch is not None:
            loaded = () if self._ending else self._loads.workers.values()
            self._end_for(watch.take(loaded, min(SETTLED_S, self._asked / 4)))
        if met is None:
            return
        if watch is not None and met is watch.worker:
            self._end_for(watch.lost(met))
        else:
            self._loads.met(met)
        self._supervisor.end(met)

    def _end_for(self, stop: Stop | None) -> None:
        """The first reason counts; what comes when the end has begun is none."""
        if not self._ending:
            self._stop = self._stop or stop

    def _take_round(self, read: Round) -> None:
        if isinstance(read.counters, Snapshot):
            self.last = read
        if not isinstance(read.log, Missing):
            self.log = read.log
        self._end_for(of_log(self._log, read.log, self._loads.seen))
        for event in self._events.listener.judged(read):
            self._events.keep(event)

    def _close(self) -> None:
        """Tell the loads to end, and wait for them; those that stay silent hung before."""
        self._seconds = self._events.since()
        self._ending = self._loads.ending = True
        if (stop := self._stop) is not None:
            self._events.note("stopped", stop.gpu, stop.text, "" if stop.reason == "interrupted" else "fail")
        for worker in [*self._loads.workers]:
            heard = worker.heard
            worker.tell("end")
            worker.heard = heard
            if self._loads.opens(worker):
                del self._loads.workers[worker]  # the driver may take its time to open: not waited for
                self._supervisor.end(worker, hung=True)
        until = time.monotonic() + (self._loads.silence_s if stop is None else LEAVE_S)
        while self._loads.workers and time.monotonic() < until:
            self._listen()
        for worker in [*self._loads.workers]:
            self._loads.met(worker)
            self._supervisor.end(worker, hung=True)

    def _facts(self) -> dict[str, Json]:
        stop = self._stop
        seen = self._loads.seen
        starts = [each.start for each in seen.values() if "value" in each.start]
        whole: Json = {
            "value": round(self._seconds, 1),
            "unit": "s",
            **{name: starts[0][name] for name in SIGNED if starts and name in starts[0]},
            "asked": self._asked,
            "stopped": stop.reason if stop is not None else None,
            "gpu": (stop.gpu or None) if stop is not None else None,
            "detail": stop.text if stop is not None else "",
            "events": [*self._events.kept],
        }
        own = {f"measure burn-in {bdf}": each.fact(self._seconds, self._known) for bdf, each in seen.items()}
        return {**own, "measure burn-in all": whole}
