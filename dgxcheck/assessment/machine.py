"""The machine that is spoken of, opened as a source, and its facts and topology."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.input_file import opened as opened_file
from dgxcheck.source.recording.load import is_shipped
from dgxcheck.source.recording.load import open_source as open_recording
from dgxcheck.survey import WIRING as WIRING
from dgxcheck.survey import Snapshot, survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from dgxcheck.source.live import LiveSource
    from dgxcheck.source.protocol import Origin, Source
    from dgxcheck.topology.model import Topology
    from dgxcheck.workers.nvml.supervisor import NvmlStage

    Given: TypeAlias = str | os.PathLike[str] | Source | None
    """What ``--from`` takes: the name of a shipped recording, a recording file or a directory; None or ``live`` for
    this machine; or a source that the caller has opened, and closes."""

LIVE = "live"
DEADLINE_S = 60.0
"""For all that asks a driver, unless an option gives another number."""
TEGRA_RELEASE = "/etc/nv_tegra_release"
ONLY_OF_TEXTS = "--host chooses among the hosts of a text; give the text with --from"
RDMA = (
    *WIRING, "bars", "config_space", "iommu", "ib_ports", "modules", "host", "device_nodes", "memlock", "gpu_board",
    "gpu_pcie", "gpu_memory",
)  # fmt: skip
"""Fields of the snapshot that ``reach.rdma`` needs."""
PEERS = (*WIRING, "p2p", "config_space", "iommu", "modules", "host", "gpu_modes", "measurement")
"""Fields of the snapshot that ``reach.peers`` needs."""
LAUNCH = (*WIRING, "ib_ports", "host", "gpu_board", "gpu_modes")
"""Fields of the snapshot that the formats for launchers need."""


class Machine(Record):
    """Facts of one machine, and how it is wired."""

    origin: Origin
    snapshot: Snapshot
    """A field per probe; what was not asked for is ``Missing(unasked)``."""
    topology: Topology


class LiveMachine:
    """The running machine, opened when it is asked for; it ends its workers. ``stage`` is NVML asked early."""

    def __init__(self, root: str = "/", stage: NvmlStage | None = None) -> None:
        self.root = root
        """Where the running machine's files are."""
        self.host = ""
        """Of a text that holds output of several hosts, the one that is asked about."""
        self._is_contained = False
        self._stage = stage
        self._opened: LiveSource | None = None

    def contain(self, root: str) -> None:
        """From now on this is a container, and its host's / is mounted at ``root``; BadInput where it is not."""
        from dgxcheck.source.contained import check_root

        check_root(root)
        self.root, self._is_contained = root.rstrip("/") or "/", True

    def source(self, spec: str | None, plan: str, deadline: float) -> Source:
        """What ``--from`` names, else this machine, its driver asked within ``deadline`` seconds.

        ``plan`` is a tuple of ``workers/nvml/plan.py`` by name.
        """
        if spec is not None:
            if self._is_contained:
                raise BadInput("--root is for this machine, --from for another one; give one of them")
            return open_source(spec, self.host)
        if self.host:
            raise BadInput(ONLY_OF_TEXTS)
        from dgxcheck.source.live import LiveSource
        from dgxcheck.workers.nvml import plan as nvml_plan

        groups: tuple[str, ...] = getattr(nvml_plan, plan)
        kind = LiveSource
        if self._is_contained:
            from dgxcheck.source.contained import ContainedSource as kind
        self._opened = kind(self.root, groups, deadline, self._stage)
        return self._opened

    def close(self) -> None:
        """End every worker that was started for this machine."""
        if self._opened is not None:
            self._opened.close()
        if self._stage is not None:
            self._stage.stop()


@contextmanager
def opened(given: Given, plan: str, deadline: float, root: str = "/") -> Iterator[Source]:
    """A source for whatever may stand for a machine; BadInput where a name stands for nothing."""
    if given is None or isinstance(given, str | os.PathLike):
        name = None if given is None else os.fspath(given)
        live = LiveMachine(root)
        try:
            yield live.source(None if name == LIVE else name, plan, deadline)
        finally:
            live.close()
    else:
        yield given


def examine(
    source: Given = None, probes: Iterable[str] = WIRING, *, deadline: float = DEADLINE_S, root: str = "/"
) -> Machine:
    """How a machine is wired, without judging it: what ``dgxcheck topo`` shows.

    ``probes`` are fields of the snapshot; with more of them than those of the wiring more is asked. ``deadline``:
    most seconds for all that asks a driver. ``root``: where the files of the live machine are. BadInput if ``source``
    names no machine.
    """
    names = tuple(probes)
    with opened(source, "TOPOLOGY" if set(names) <= set(WIRING) else "EVERYTHING", deadline, root) as machine:
        facts = surveyed(machine, names)
        return Machine(origin=machine.origin, snapshot=facts, topology=topology_of(facts))


def device_names(spec: str | None) -> list[str]:
    """GPUs and adapters for completion: of this machine as PCI has them, for its driver may hang."""
    if spec is not None:
        with suppress(BadInput):
            return [device.name for device in examine(spec).topology.devices if device.kind in ("gpu", "nic")]
        return []
    from dgxcheck.source.live import LiveSource

    devices = topology_of(survey(LiveSource(), ("pci", "infiniband"))).devices
    gpus = [f"GPU{number}" for number in range(sum(device.kind == "gpu" for device in devices))]
    return [*gpus, *(device.name for device in devices if device.kind == "nic")]


def surveyed(source: Source, names: Iterable[str]) -> Snapshot:
    """What the probes of these names find; BadInput for a Jetson: the release file of its system, or the name that its
    driver, nvgpu, gives to the GPU in the chip."""
    facts = survey(source, names)
    models = (gpu.name for gpu in facts.listed_gpus)
    chip = next((model for model in models if isinstance(model, str) and model.endswith("(nvgpu)")), "")
    if chip or isinstance(source.text(TEGRA_RELEASE), str):
        what = f"{chip}: Jetson" if chip else f"{TEGRA_RELEASE}: Jetson"
        raise BadInput(f"{what} is not supported: its GPU is in the chip, without PCIe, NVLinks and most of NVML")
    return facts


def topology_of(facts: Snapshot) -> Topology:
    """How the machine of these facts is wired."""
    from dgxcheck.topology.build import build

    return build(facts)


_JSON, _SCHEMA = b"{", b'"dgxcheck/'

def open_source(spec: str, host: str = "") -> Source:
    """The machine that a name stands for; of a text or a bundle of several hosts that of ``host``.

    BadInput for a name that stands for none.
    """
    if is_shipped(spec):
        return _of_one_host(open_recording(spec), spec, host)
    from dgxcheck.readers.bundles.sniff import is_bundle

    if is_bundle(spec):
        from dgxcheck.assessment.importing.bundle import open_bundle

        return open_bundle(spec, host)
    if spec == "-" or begins_like_text(spec):
        from dgxcheck.assessment.importing.recording import open_text

        if (found := open_text(spec, host)) is not None:
            return found
        if spec == "-":
            raise BadInput("-: the standard input holds no output of a known tool; recordings are read from files")
    try:
        return _of_one_host(open_recording(spec), spec, host)
    except BadInput:
        if (result := _json_of_a_tool(spec, host)) is None:
            raise
        return result


def _of_one_host(source: Source, spec: str, host: str) -> Source:
    """A source that stands for one machine, so that there is no host to choose."""
    if host:
        raise BadInput(f"--host {host}: {spec} is no text of several hosts; leave out --host")
    return source


def _json_of_a_tool(path: str, host: str) -> Source | None:
    """``dcgmi diag -j`` and the like, whole or cut; None for a file of ours that is damaged."""
    head = _head(path)
    if not head.startswith(_JSON) or _SCHEMA in head:
        return None
    from dgxcheck.assessment.importing.recording import open_text

    return open_text(path, host)


def begins_like_text(path: str) -> bool:
    """Is it a regular file that begins like no recording?"""
    head = _head(path)
    return bool(head) and not head.startswith(_JSON)


def _head(path: str) -> bytes:
    """Empty for what is no regular file or cannot be read; of a file that gzip packed what it holds."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with opened_file(path) as file:
            return file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (OSError, EOFError, ValueError):
        return b""
