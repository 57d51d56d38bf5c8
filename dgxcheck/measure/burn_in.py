"""A burn-in: every GPU under load for a time, looked at once a second, and stopped where it becomes dangerous.

The load of each GPU is a process of its own, so that one that hangs or dies ends no other; another one looks at NVML.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.measure.burn_in_plan import Load
from dgxcheck.measure.burn_in_seen import Seen
from dgxcheck.measure.burn_in_stop import HELD_S, Limits, Stop, grown, of_log, of_samples
from dgxcheck.measure.hot_plug import HotPlug
from dgxcheck.measure.rounds import Round, Rounds
from dgxcheck.reading import Gap, Json, Missing
from dgxcheck.workers import left_behind
from dgxcheck.workers.stream import Worker, bury, next_event

LOAD, SAMPLER = "dgxcheck.workers.load_child", "dgxcheck.workers.sampler_child"
LIBRARY = "libcuda.so.1"
START, FAILED, CLOSING = "start", "failed", "closing"
BETWEEN_STARTS_S = 0.5
"""A power supply does not see all GPUs begin at once."""
SAMPLE_EVERY_S, LISTEN_S = 1.0, 0.2
UNWATCHED_S = 30.0
"""Without a sample for so long the load ends: nobody would see a GPU overheat."""
LEAST_START_S = 90.0
LEAVE_S = 5.0
"""Seconds that a load may take to end when it is told to."""
CYCLE_UNITS = 7
UNIT_S = 1.0
SETTLED_S = 5.0
MOST_EVENTS = 200
Event = dict[str, Json]


class Listener(Protocol):
    """Who follows a burn-in; times are seconds since the load began, negative before."""

    def sample(self, at: float, sample: Mapping[str, Any]) -> None:
        """NVML was looked at."""

    def event(self, at: float, event: Event) -> None:
        """Something happened: ``event``, ``gpu`` and ``text``, ``status`` where it is bad."""

    def moment(self, elapsed: float, step: str) -> None:
        """Some time has passed."""

    def judged(self, read: Round) -> Sequence[Event]:
        """What is wrong according to counters and log that was not wrong before."""


class BurnIn:
    """One run. ``interrupt`` may be called from a signal handler."""

    def __init__(
        self, loads: Sequence[Load], seconds: float, silence_s: float, known: Limits, rounds: Rounds,
        log_before: KernelLog | Missing, listener: Listener, files: Mapping[str, str], library: str = LIBRARY,
        start: Callable[..., Worker] = Worker,
    ) -> None:  # fmt: skip
        """``silence_s`` is how long a load may say nothing, ``files`` are counters of PCIe errors by name."""
        self._plan = list(loads)
        self._asked = seconds
        self._unit = min(UNIT_S, seconds / (3 * CYCLE_UNITS))
        self._silence_s = max(silence_s or inf, 10 * self._unit)
        self._known, self._rounds, self._log, self._listener = known, rounds, log_before, listener
        self._files, self._library, self._start = files, library, start
        self.seen = {load.gpu: Seen(load.gpu) for load in loads}
        self._events: list[Event] = []
        self._loads: dict[Worker, Seen] = {}
        self._sampler: Worker | None = None
        self._gone: list[Worker] = []
        self._first: Mapping[str, Any] | None = None
        self._recent: deque[Mapping[str, Any]] = deque(maxlen=8 * int(HELD_S))
        self._aer: Mapping[str, Any] = {}
        self._plug = HotPlug()
        self._stop: Stop | None = None
        self._made = time.monotonic()
        self._begun: float | None = None
        self._over: float | None = None
        self.last: Round | None = None
        """The last look at counters and log that was whole."""

    def interrupt(self) -> None:
        """End the load at the next chance; ``run`` returns with what was seen."""
        self._stop = self._stop or Stop("interrupted", "", "interrupted")

    def run(self) -> dict[str, Json]:
        """Burn; ``measure burn-in BDF`` of each GPU and ``measure burn-in all``."""
        if (stuck := left_behind.stuck(LOAD)) is not None:
            return {"measure burn-in all": {"missing": Gap.TIMEOUT.value, "detail": stuck}}
        if self._plug.trouble:
            self._note("note", "", self._plug.trouble)
        if isinstance(self._log, Missing):
            self._note("note", "", f"the kernel log is not watched: {self._log}")
        try:
            self._watch()
            self._begin()
            self._rounds.start()
            while self._stop is None and time.monotonic() - self._since() < self._asked:
                self._step()
            self._over = time.monotonic()
            self._say_stopped()
            self._end()
        finally:
            for worker in (*self._loads, *filter(None, [self._sampler])):
                self._bury(worker, hung=False)
            bury(self._gone)
        for read in self._rounds.finish(LEAST_START_S):
            self._take_round(read)
        return self._facts()

    def _watch(self) -> None:
        """Nothing is loaded that nobody looks at."""
        plan = {"gpus": [load.gpu for load in self._plan], "files": dict(self._files), "every_s": SAMPLE_EVERY_S}
        self._sampler = self._start(SAMPLER, json.dumps(plan))
        while self._first is None and self._stop is None:
            self._listen()
        self._stop = self._stop or of_samples(self._first or {}, self._recent, self._known)

    def _begin(self) -> None:
        due = time.monotonic()
        for number, load in enumerate(self._plan):
            while self._stop is None and time.monotonic() < due + number * BETWEEN_STARTS_S:
                self._listen()
            if self._stop is not None:
                return
            seen = self.seen[load.gpu]
            seen.first = (self._first or {}).get("gpus", {}).get(load.gpu, {})
            plan = {"library": self._library, "gpu": load.gpu, "peers": list(load.peers), "cpus": list(load.cpus),
                    "begin": time.monotonic(), "unit_s": self._unit}  # fmt: skip
            self._loads[self._start(LOAD, json.dumps(plan))] = seen
        while self._stop is None and any(not seen.start and not seen.ended for seen in self._loads.values()):
            self._step()
        self._begun = time.monotonic()
        self._note("started", "", f"{len(self._loads)} GPUs under load")

    def _step(self) -> None:
        self._listen()
        for read in self._rounds.found():
            self._take_round(read)
        for action, bdf in self._plug.heard():
            self._note("hot-plug", bdf, f"{action} of PCI function {bdf}", "warn")
            if action == "remove" and bdf in self.seen:
                self._stop = self._stop or Stop("vanished", bdf, "its PCI function was removed")
        if not self._loads and self._plan:
            self._stop = self._stop or Stop("no-load", "", "no GPU takes any load")
        self._listener.moment(max(0.0, time.monotonic() - self._since()), self._doing())

    def _listen(self) -> None:
        """Take in what the workers say, for a moment."""
        active = [worker for worker in (*self._loads, self._sampler) if worker is not None]
        met = next_event(active, self._silence, time.monotonic() + LISTEN_S)
        for worker, seen in self._loads.items():
            self._take_load(worker, seen)
        self._take_samples()
        if met is None:
            return
        if met is self._sampler:
            self._sampler = None
            why = met.ended or f"no sample for {UNWATCHED_S:g} s"
            self._stop = self._stop or Stop("unwatched", "", f"NVML is not looked at any more: {why}")
        else:
            seen = self._loads.pop(met)
            if met.ended != "done":
                self._blame(met, seen)
        self._bury(met, hung=met.ended is None)

    def _take_load(self, worker: Worker, seen: Seen) -> None:
        for key, text in worker.answers.items():
            fact = json.loads(text)
            name = key.partition(" ")[0]
            if name == START:
                seen.start = fact
                if "value" not in fact:
                    self._note("no-load", seen.bdf, _why(fact))
            elif name == FAILED:
                self._failed(seen, fact)
            elif "failed" in fact:
                self._note("note", seen.bdf, f"no more of turn {name}: {_why(fact)}")
            elif wrong := seen.turn(name, fact):
                self._note("wrong-words", seen.bdf, f"{wrong} wrong words in turn {name}", "fail")
        worker.answers.clear()

    def _failed(self, seen: Seen, fact: Mapping[str, Any]) -> None:
        """The driver refused something: before the load began nothing was burnt, after it the load ended for that."""
        text = _why(fact)
        if seen.start:
            seen.ended = text
        else:
            seen.start = fact
        self._note("load-ended", seen.bdf, text, "fail" if "failed" in fact else "")

    def _blame(self, worker: Worker, seen: Seen) -> None:
        """A load that hung or died."""
        if worker.pending == CLOSING or seen.ended or "failed" in seen.start:
            return
        why = worker.ended or f"hung: no answer for {time.monotonic() - worker.heard:.0f} s"
        text = f"{why} in turn {worker.pending}" if worker.pending not in (None, START) else why
        if seen.start:
            seen.ended = text
        elif worker.ended is None:
            seen.start = {"missing": Gap.TIMEOUT.value, "detail": f"CUDA did not open: {why}"}
        else:
            seen.start = {"failed": why, "detail": "the process that loads it"}
        self._note("load-ended", seen.bdf, text, "fail")

    def _take_samples(self) -> None:
        worker = self._sampler
        for text in [*worker.answers.values()] if worker is not None else ():
            sample = json.loads(text)
            if self._first is None:
                self._first = sample
            self._recent.append(sample)
            self._take_aer(sample["aer"])
            at = sample["at"] - self._since()
            settled = at >= min(SETTLED_S, self._asked / 4)
            if self._over is None:
                for seen in self._loads.values() if self._begun is not None else ():
                    seen.sample(sample["gpus"].get(seen.bdf, {}), settled)
                self._stop = self._stop or of_samples(self._first, self._recent, self._known)
            self._listener.sample(at, sample)
        if worker is not None:
            worker.answers.clear()

    def _take_aer(self, totals: Mapping[str, Any]) -> None:
        for name in totals:
            if more := grown(self._aer, totals, name):
                self._note("aer", name.partition(" ")[0], f"PCIe errors ({name}) grew by {more}", "warn")
        self._aer = {**self._aer, **{name: total for name, total in totals.items() if total is not None}}

    def _take_round(self, read: Round) -> None:
        if read.counters is not None:
            self.last = read
        stop = of_log(self._log, read.log, self.seen)
        if stop is not None and self._over is None:
            self._stop = self._stop or stop
        for event in self._listener.judged(read):
            self._keep(event)

    def _say_stopped(self) -> None:
        if self._stop is not None:
            self._note("stopped", self._stop.gpu, self._stop.text, "" if self._stop.reason == "interrupted" else "fail")

    def _end(self) -> None:
        """Tell the loads to end, and wait for them; those that were silent for too long hung before."""
        for worker, seen in [*self._loads.items()]:
            heard = worker.heard
            worker.tell("end")
            worker.heard = heard
            if not seen.start:
                self._loads.pop(worker)  # the driver may take its time to open: not waited for
                self._bury(worker, hung=True)
        patience = self._silence_s if self._stop is None else LEAVE_S
        until = time.monotonic() + patience
        while self._loads and time.monotonic() < until:
            self._listen()
        for worker in [*self._loads]:
            if time.monotonic() - worker.heard >= min(self._silence_s, LEAVE_S):
                self._blame(worker, self._loads.pop(worker))
                self._bury(worker, hung=True)

    def _facts(self) -> dict[str, Json]:
        seconds = max(0.0, (self._over or time.monotonic()) - self._since()) if self._begun is not None else 0.0
        stop = self._stop
        whole: Json = {
            "value": round(seconds, 1),
            "unit": "s",
            **self._signed(),
            "asked": self._asked,
            "stopped": stop.reason if stop is not None else None,
            "gpu": (stop.gpu or None) if stop is not None else None,
            "detail": stop.text if stop is not None else "",
            "events": [*self._events],
        }
        own = {
            f"measure burn-in {bdf}": seen.fact(
                seconds, self._known, stop.text if stop is not None and stop.gpu == bdf else ""
            )
            for bdf, seen in self.seen.items()
        }
        return {**own, "measure burn-in all": whole}

    def _signed(self) -> dict[str, Json]:
        starts = [seen.start for seen in self.seen.values() if "value" in seen.start]
        return {name: starts[0][name] for name in ("tool", "how") if starts and name in starts[0]}

    def _note(self, what: str, bdf: str, text: str, status: str = "") -> None:
        event: Event = {"event": what, "gpu": bdf or None, "text": text}
        self._keep({**event, "status": status} if status else event)

    def _keep(self, event: Event) -> None:
        at = round(time.monotonic() - self._since(), 1)
        if len(self._events) < MOST_EVENTS:
            self._events.append({"at_s": at, **event})
        self._listener.event(at, event)

    def _bury(self, worker: Worker, hung: bool) -> None:
        if worker is self._sampler:
            self._sampler = None
        if worker not in self._gone:
            worker.stop(hung=hung)
            self._gone.append(worker)

    def _since(self) -> float:
        """When the load began on all GPUs; before that, now, for no time of it has passed."""
        return self._begun if self._begun is not None else time.monotonic()

    def _doing(self) -> str:
        """The turn of the first GPU."""
        pending = next((worker.pending for worker in self._loads if worker.pending), None)
        return (pending or "").partition(" ")[0] or "waiting"

    def _silence(self, worker: Worker) -> float:
        if worker is self._sampler:
            return UNWATCHED_S
        if worker.pending in (None, START) and not self._loads[worker].start:
            return max(self._silence_s, LEAST_START_S)
        return self._silence_s


def _why(fact: Mapping[str, Any]) -> str:
    return ": ".join(str(fact[name]) for name in ("skipped", "failed", "missing", "detail") if fact.get(name))
