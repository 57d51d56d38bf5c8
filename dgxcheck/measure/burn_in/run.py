"""Run a burn-in: every GPU under load, monitored once a second, stopped early if it becomes dangerous."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from dgxcheck.facts.kernel_log import KernelLog, with_overwritten
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.measure.burn_in.events import Events, Listener
from dgxcheck.measure.burn_in.hot_plug import HotPlug
from dgxcheck.measure.burn_in.loads import MODULE, LoadWorkers
from dgxcheck.measure.burn_in.plan import GpuLoad
from dgxcheck.measure.burn_in.polling import Poll, Poller
from dgxcheck.measure.burn_in.result import SIGNED
from dgxcheck.measure.burn_in.stop_rules import SlowdownThresholds, Stop, stop_for_log
from dgxcheck.measure.burn_in.watch import Watch
from dgxcheck.survey import Snapshot
from dgxcheck.workers import stuck_workers
from dgxcheck.workers.cuda.supervisor import LIBRARY
from dgxcheck.workers.supervisor import LEAST_START_S, Supervisor, timeout

BETWEEN_STARTS_S = 0.5
"""Staggered start, so that the power supplies do not see all GPUs start at once."""
LISTEN_S = 0.2
LEAVE_S = 5.0
"""Seconds for the loads to end after an early stop."""
SETTLED_S = 5.0


class BurnIn:
    """One run. ``interrupt`` may be called from a signal handler."""

    def __init__(
        self, loads: Sequence[GpuLoad], seconds: float, silence_s: float, limits: SlowdownThresholds, poller: Poller,
        log_before: KernelLog | Missing, listener: Listener, files: Mapping[str, str], library: str = LIBRARY,
    ) -> None:  # fmt: skip
        """``silence_s`` is how long a load may say nothing, ``files`` are counters of PCIe errors by name."""
        self._requested_s, self._limits, self._poller, self._log = seconds, limits, poller, log_before
        self._files, self._wait_s = files, silence_s or LEAST_START_S
        self._events = Events(listener)
        self._supervisor = Supervisor()
        self._loads = LoadWorkers(loads, seconds, silence_s, library, self._events, self._supervisor)
        self._watch: Watch | None = None
        self._hot_plug = HotPlug()
        self._stop: Stop | None = None
        self._seconds = 0.0
        self._ending = False
        self.last: Poll | None = None
        """The last poll with counters."""
        self.log = log_before
        """The kernel log as last read, with what it has lost since the beginning."""

    def interrupt(self) -> None:
        """End the load soon; ``run`` returns the results so far."""
        self._end_for(Stop("interrupted", "", "interrupted"))

    def run(self) -> dict[str, Json]:
        """Run the burn-in; returns the facts ``measure burn-in BDF`` of each GPU and ``measure burn-in all``."""
        if (stuck := stuck_workers.stuck(MODULE)) is not None:
            return {"measure burn-in all": timeout(stuck)}
        unwatched = f"kernel log not monitored: {self._log}" if isinstance(self._log, Missing) else ""
        for text in filter(None, (self._hot_plug.trouble, unwatched)):
            self._events.note("note", "", text)
        try:
            self._open()
            while self._stop is None and self._events.since() < self._requested_s:
                self._step()
            self._end_loads()
        finally:
            self._supervisor.stop()
        for poll in self._poller.finish(LEAST_START_S):
            self._take_poll(poll)
        return self._facts()

    def _open(self) -> None:
        """Start the loads; the first sample comes before any load, so that no load runs unmonitored."""
        self._watch = Watch(
            [*self._loads.results], self._files, self._wait_s, self._limits, self._events, self._supervisor
        )
        while self._watch.first is None and self._stop is None:
            self._listen()
        self._loads.begin(self._watch.busy)
        begin = time.monotonic()
        for number, (bdf, result) in enumerate(self._loads.results.items()):
            while self._stop is None and time.monotonic() < begin + number * BETWEEN_STARTS_S:
                self._listen()
            if self._stop is not None:
                return
            result.first = self._watch.before_load(bdf)
            if bdf in self._watch.busy:
                result.start = {"skipped": "busy", "detail": self._watch.busy[bdf]}
            else:
                self._loads.launch(bdf)
        while self._stop is None and self._loads.waiting_for_start:
            self._listen()
        self._events.load_start = time.monotonic()
        self._events.note("started", "", f"GPUs under load: {len(self._loads.workers)}")
        self._poller.start()

    def _step(self) -> None:
        self._listen()
        for poll in self._poller.since_last():
            self._take_poll(poll)
        for change in self._hot_plug.changes():
            self._events.note("hot-plug", change.name, f"PCI function {change.name}: {change.action}", "warn")
            if change.action == "remove" and change.name in self._loads.results:
                self._end_for(Stop("vanished", change.name, "its PCI function was removed"))
        if self._hot_plug.lost:
            self._events.note("note", "", self._hot_plug.trouble)
            self._hot_plug = HotPlug()
        if not self._loads.workers:
            self._end_for(Stop("no-load", "", "no GPU is under load"))
        self._events.listener.progress(self._events.since(), self._loads.current_turn)

    def _listen(self) -> None:
        """Read the workers' answers, waiting up to ``LISTEN_S``."""
        watch = self._watch
        ended = self._supervisor.next_event(time.monotonic() + LISTEN_S)
        self._loads.read_answers()
        if watch is not None:
            loaded = () if self._ending else self._loads.workers.values()
            self._end_for(watch.read_samples(loaded, min(SETTLED_S, self._requested_s / 4)))
        if ended is None:
            return
        if watch is not None and ended is watch.worker:
            self._end_for(watch.worker_ended(ended))
        else:
            self._loads.worker_ended(ended)
        self._supervisor.end(ended)

    def _end_for(self, stop: Stop | None) -> None:
        """Stop the burn-in; only the first reason counts, and none once it is ending."""
        if not self._ending:
            self._stop = self._stop or stop

    def _take_poll(self, poll: Poll) -> None:
        if isinstance(poll.counters, Snapshot):
            self.last = poll
        if not isinstance(poll.log, Missing):
            self.log = with_overwritten(self.log, poll.log)
        self._end_for(stop_for_log(self._log, poll.log, self._loads.results))
        for event in self._events.listener.new_findings(poll):
            self._events.record(event)

    def _end_loads(self) -> None:
        """End the loads and wait for them; those that stay silent count as hung."""
        self._seconds = self._events.since()
        self._ending = self._loads.ending = True
        if (stop := self._stop) is not None:
            self._events.note("stopped", stop.gpu, stop.text, "" if stop.reason == "interrupted" else "fail")
        for worker in [*self._loads.workers]:
            last_heard = worker.heard
            worker.tell("end")
            worker.heard = last_heard
            if self._loads.is_opening_cuda(worker):
                del self._loads.workers[worker]  # the driver may take its time to open: not waited for
                self._supervisor.end(worker, hung=True)
        until = time.monotonic() + (self._loads.silence_s if stop is None else LEAVE_S)
        while self._loads.workers and time.monotonic() < until:
            self._listen()
        for worker in [*self._loads.workers]:
            self._loads.worker_ended(worker)
            self._supervisor.end(worker, hung=True)

    def _facts(self) -> dict[str, Json]:
        stop = self._stop
        results = self._loads.results
        starts = [result.start for result in results.values() if "value" in result.start]
        whole: Json = {
            "value": round(self._seconds, 1),
            "unit": "s",
            **{name: starts[0][name] for name in SIGNED if starts and name in starts[0]},
            "asked": self._requested_s,
            "stopped": stop.reason if stop is not None else None,
            "gpu": (stop.gpu or None) if stop is not None else None,
            "detail": stop.text if stop is not None else "",
            "events": self._events.all(),
        }
        own = {f"measure burn-in {bdf}": result.fact(self._seconds, self._limits) for bdf, result in results.items()}
        return {**own, "measure burn-in all": whole}
