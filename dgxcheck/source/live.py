"""This machine, now: files read here, whatever a driver stands behind asked in a worker."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import BadInput, Gap, Missing, missing, read_or_gap
from dgxcheck.rootfs import decode, list_names, most_of, read_bytes
from dgxcheck.source.pci_ids import PciIds
from dgxcheck.source.protocol import Json, Origin, Source
from dgxcheck.source.recording.keys import DEVICE, GroupedFacts, flatten, from_json, nvml_key
from dgxcheck.workers.files.driver_backed import driver_backed
from dgxcheck.workers.files.supervisor import FilesStage
from dgxcheck.workers.nvml.plan import COUNTERS, EVERYTHING
from dgxcheck.workers.nvml.supervisor import INIT, NvmlStage


class LiveSource:
    """Answers of the running system. ``nvml_stage`` may have been started before, to save its start-up time."""

    def __init__(
        self, root: str = "/", groups: Sequence[str] = EVERYTHING, deadline: float = 60.0,
        nvml_stage: NvmlStage | None = None, at_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.origin = Origin("live")
        self.at_s = at_s
        self._started = time.monotonic()
        self._root = "" if root == "/" else root
        self._deadline = deadline
        if nvml_stage is not None and not {*groups} <= {*nvml_stage.groups}:
            nvml_stage.stop()  # what it was started for early is not all that is asked
            nvml_stage = None
        self._nvml = nvml_stage or NvmlStage(groups, deadline)
        self._nvml.deadline = deadline
        self._files = FilesStage(self._root, deadline)
        if "counters" in groups:  # who asks for NVML's counters asks for those of files too
            self._files.start()
        self._ids = PciIds(self._root)
        self._texts: dict[str, str | Missing] = {}
        self._next: LiveSource | None = None
        self._links: dict[str, str | Missing] = {}
        self._names: dict[str, tuple[str, ...] | Missing] = {}
        self._earlier: tuple[str, ...] | None = None

    def text(self, path: str) -> str | Missing:
        if path not in self._texts:
            self._texts[path] = self._read_text(path)
        return self._texts[path]

    def data(self, path: str) -> bytes | Missing:
        if not driver_backed(path):
            return read_or_gap(path, lambda: read_bytes(self._root + path, most_of(path)))
        answer = self._files.ask(f"data {path}")
        return bytes.fromhex(answer) if isinstance(answer, str) else _gap(answer, path)

    def link(self, path: str) -> str | Missing:
        if path not in self._links:
            self._links[path] = self._read_link(path)
        return self._links[path]

    def names(self, path: str) -> tuple[str, ...] | Missing:
        if path not in self._names:
            self._names[path] = read_or_gap(path, lambda: list_names(self._root + path))
        return self._names[path]

    def opens(self, path: str) -> bool | Missing:
        answer = self._files.ask(f"opens {path}")
        return answer if isinstance(answer, bool) else _gap(answer, path)

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        self._heard_nvml()
        key = nvml_key(function, subject, args)
        if (text := self._nvml.answers.get(key)) is not None:
            return from_json(json.loads(text), key[5:])
        first = from_json(json.loads(self._nvml.answers.get(INIT, "true")), key[5:])
        return first if isinstance(first, Missing) else self._nvml.missing(key, subject)

    def name(self, table: str, key: str) -> str | Missing:
        return self._ids.name(key) if table == "pci" else Missing(Gap.ABSENT, f"{table} {key}")

    def kernel_log(self) -> tuple[str, ...] | Missing:
        """The log as it is now, and the Xids that earlier runs saw, which are read once."""
        from dgxcheck.source.kernel_log.kmsg import read, with_earlier

        answer = read(self._root + DEVICE)
        if self._earlier is None:
            self._earlier = _earlier()
        return answer if isinstance(answer, Missing) else with_earlier(answer, self._earlier)

    def measured(self) -> Mapping[str, Json] | Missing:
        """What the last ``health --extended`` since the machine was started has measured."""
        kept = self._saved_measurements()
        nothing = Missing(Gap.UNASKED, "measure", "not measured since the machine was started; health --extended does")
        return nothing if kept is None else flatten(kept)

    def stated(self) -> Mapping[str, Json] | Missing:
        return Missing(Gap.UNASKED, "stated", "a machine speaks for itself")

    def later(self, seconds: float) -> Source | Missing:
        """Waits until ``seconds`` after the first answers, then asks the counters of this machine again."""
        self._heard_nvml()
        time.sleep(max(0.0, seconds - (time.monotonic() - self._started)))
        elapsed = round(time.monotonic() - self._started, 3)
        self.close()
        self._next = type(self)(self._root or "/", COUNTERS, self._deadline, at_s=self.at_s + elapsed)
        return self._next

    def close(self) -> None:
        """End the workers, those of later moments too; nothing more is asked."""
        self._nvml.stop()
        self._files.stop()
        if self._next is not None:
            self._next.close()

    def _heard_nvml(self) -> None:
        """Wait for NVML; what is waited for it is not there any more for files."""
        before = time.monotonic()
        self._nvml.finish()
        self._files.spent += time.monotonic() - before

    def _saved_measurements(self) -> GroupedFacts | None:
        from dgxcheck.source import state_file

        try:
            kept = state_file.read(state_file.default_path(state_file.MEASURED))
        except (BadInput, OSError):
            return None
        boot_id = self.text("/proc/sys/kernel/random/boot_id")
        return kept.lines if kept is not None and boot_id == f"{kept.boot_id}\n" else None

    def _read_text(self, path: str) -> str | Missing:
        if driver_backed(path):
            answer = self._files.ask(f"text {path}")
            return answer if isinstance(answer, str) else _gap(answer, path)
        return read_or_gap(path, lambda: decode(read_bytes(self._root + path, most_of(path))))

    def _read_link(self, path: str) -> str | Missing:
        try:
            return decode(os.fsencode(os.readlink(self._root + path)))
        except OSError as error:
            # EINVAL: there is a file of this name, but it is no link
            return Missing(Gap.ABSENT, path, "not a link") if error.errno == 22 else missing(path, error)


def _gap(answer: Json, path: str) -> Missing:
    gap = from_json(answer, path)
    return gap if isinstance(gap, Missing) else Missing(Gap.GARBLED, path, "the worker gave no answer of this kind")


def _earlier() -> tuple[str, ...]:
    """What the usual state file has of Xids."""
    from dgxcheck.source import state_file

    try:
        kept = state_file.read(state_file.default_path())
    except (BadInput, OSError):
        return ()
    return () if kept is None else state_file.recent(kept.xids, state_file.now()[1])
