"""What checks judge: the facts of a machine, its reference and the site's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dgxcheck.checks.engine.finding import Finding, Judgement, Subject, skip
from dgxcheck.checks.engine.gaps import missing_in, unjudged
from dgxcheck.components.device_facts import GpuView
from dgxcheck.components.locate import serial_of
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.host import Module, Modules
from dgxcheck.facts.ids import GUEST_MODES
from dgxcheck.facts.kernel_log import NO_LOG, KernelLog
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.nvml.gpu import Nvml, vgpus
from dgxcheck.facts.record import Record, remembered, replace
from dgxcheck.profiles.library import board_id, id_of_name, name_of, nvml_board_id
from dgxcheck.profiles.model import Board, Number, SelectedProfile
from dgxcheck.settings import Settings
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology, slot_of

if TYPE_CHECKING:
    from dgxcheck.difference.model import Compared
    from dgxcheck.facts.inventory import Count, Remembered

DEFAULTS = Settings()
HOST = Subject(kind="host", name="host", bdf=None)
NO_GROWTH = skip("not-in-level", "counters were read once")


def pci_subject(bdf: str) -> Subject:
    """A PCI function that is neither a GPU nor an HCA, as a port of a root complex or switch."""
    return Subject(kind="pci", name=bdf, bdf=bdf)


def unlisted_gpu(name: str) -> Subject:
    """A GPU that the topology does not have, by its bus id or as a text names it."""
    return Subject(kind="gpu", name=gpu_at(name), bdf=name) if ":" in name else Subject(kind="gpu", name=name, bdf=None)


class Growth(Record):
    """Counters of the machine at two times, in snapshots that hold nothing else."""

    old: Snapshot
    new: Snapshot
    seconds: float
    how: str
    """For people: ``since 2026-11-20T10:00:00Z``, ``within 10 s``."""
    logged: bool = False
    """Was the kernel log read at the second time? Else it ends with the first."""


class Box(Record):
    """One machine with its reference and the site's settings: all that a check reads."""

    snapshot: Snapshot
    topology: Topology
    gpus: tuple[Device, ...]
    """The GPUs asked about, named as in the matrix; those that NVML does not list have no index."""
    settings: Settings = DEFAULTS
    choice: SelectedProfile | None = None
    """The reference machine; None if no profile matches."""
    boards: Mapping[str, Board] = {}
    """What is known of GPU models, by id."""
    drift: Compared | None = None
    """The differences from the recording of ``--baseline``; None without one."""
    growth: Growth | Judgement = NO_GROWTH
    """The counters at two times; without them the skip for every check of growth."""
    found: tuple[Finding, ...] = ()
    """What the checks before found, for those that report what no other does."""
    inventory: Mapping[str, Count] = {}
    """What earlier runs on this host counted of each kind of device; empty where there was none."""
    kept: Remembered | None = None
    """What an earlier run read of this host's inventory, versions and settings; None where there was none."""
    state_trouble: str = ""
    """What of the state file of earlier runs was damaged, and so was dropped."""
    present: Mapping[str, int] = {}
    """What this run counts."""
    cut: str = ""
    """In words, what is wrong with a source that is not whole; empty for one that is."""

    @property
    def nvml(self) -> Nvml | Missing:
        """NVML's list of GPUs; Missing where it cannot even count them."""
        nvml = self.snapshot.gpu
        if isinstance(nvml, Nvml) and isinstance(nvml.count, Missing) and not nvml.gpus:
            return nvml.count
        return nvml

    @property
    def guessed(self) -> bool:
        """Is the reference machine selected by the GPUs alone?"""
        return self.choice is not None and self.choice.how == "gpus"

    @property
    def is_known(self) -> bool:
        """Is the machine known by more than its GPUs? Else what is less than expected is only a warning."""
        return self.choice is not None and self.choice.how != "gpus"

    @property
    def log(self) -> KernelLog:
        """The kernel log; one without a line where it is not known."""
        log = self.snapshot.kernel_log
        return NO_LOG if isinstance(log, Missing) else log

    @property
    def modules(self) -> tuple[Module, ...]:
        """The kernel modules that were looked for; none where they are not known."""
        return self.snapshot.modules.modules if isinstance(self.snapshot.modules, Modules) else ()

    @property
    def readings(self) -> tuple[Snapshot, ...]:
        """The facts and, where counters were read twice, those of the second time, which hold counters alone."""
        return (self.snapshot,) if isinstance(self.growth, Judgement) else (self.snapshot, self.growth.new)

    @property
    def gaps(self) -> tuple[Missing, ...]:
        """What is missing of all readings, each gap once."""
        return missing_in(*self.readings)

    def gpu(self, gpu: Device | str | None) -> GpuView:
        """Every fact of one GPU, by bdf or device: ``box.gpu(bdf).ecc``."""
        return GpuView(self.snapshot, gpu.bdf if isinstance(gpu, Device) else gpu)

    def at(self, bdf: str) -> Device:
        """The GPU of a record of NVML."""
        return next(gpu for gpu in self.topology.gpus if gpu.bdf == bdf)

    def board(self, gpu: Device) -> Board | None:
        """The entry of this GPU's model in boards.toml: by PCI id, else by NVML's id or name (in an imported text).

        None for a vGPU, which has the PCI id of the board that it is a share of, and where a guest's driver does not
        say which of both it is.
        """
        if gpu.bdf in vgpus(self.snapshot.gpu, self.snapshot.gpu_board):
            return None
        named = any(row.bdf == gpu.bdf and isinstance(row.name, str) for row in self.snapshot.listed_gpus)
        if not named and guest(self) is not None:
            return None
        return self.boards.get(self.board_id(gpu) or id_of_name(name_of(gpu, self.snapshot)))

    @property
    def reference_gpus(self) -> tuple[Device, ...]:
        """The GPUs that the numbers and the wiring of the reference machine count: none beside them, as for a display;
        where it was chosen by GPU model, those of its models."""
        return tuple(gpu for gpu in self.topology.gpus if self._is_counted(gpu))

    def _is_counted(self, gpu: Device) -> bool:
        id = "" if self.choice is None else self.board_id(gpu)
        if self.choice is None or not id:
            return True
        boards = self.choice.profile.boards if self.choice.how == "gpus" else ()
        return id in boards if boards else id not in self.choice.profile.beside

    def number(self, key: str, gpu: Device | None = None) -> Number | None:
        """A number of the reference machine, for a GPU that it counts; None where it has none, or is not known."""
        return None if self.choice is None or (gpu and not self._is_counted(gpu)) else self.choice.number(key)

    def board_number(self, gpu: Device, key: str) -> Number | None:
        """A number of this GPU's model; None where it has none, or is not known."""
        board = self.board(gpu)
        return None if board is None else board.numbers.get(key)

    def board_id(self, gpu: Device) -> str:
        """``10de:1db1``; empty where a text names the model alone."""
        return board_id(gpu) or nvml_board_id(gpu, self.snapshot)

    def subclass(self, bdf: str | None) -> int:
        """PCI base class and subclass of a function; -1 where they are not known."""
        function = self.topology.functions.get(bdf or "")
        return -1 if function is None else function.subclass

    def subject(self, device: Device) -> Subject:
        """The subject of a finding about a GPU or an HCA."""
        is_gpu = device.kind == "gpu"
        return _subject(self, device) if is_gpu else Subject(kind="hca", name=device.name, bdf=device.bdf)

    def subject_at(self, bdf: str) -> Subject:
        """The subject of a finding about a PCI function: a GPU, an HCA, or any other."""
        device = self.topology.device(bdf)
        return pci_subject(bdf) if device is None else self.subject(device)

    def pair(self, a: Device, b: Device) -> Subject:
        """The subject of a finding about what joins two GPUs."""
        return replace(self.subject(a), peer=self.subject(b))


@remembered(32)  # every check of GPUs asks for each
def _subject(box: Box, gpu: Device) -> Subject:
    return Subject(
        kind="gpu", name=gpu.name, bdf=gpu.bdf, uuid=gpu.uuid, serial=serial_of(box, gpu.bdf),
        slot=slot_of(gpu, box.snapshot.slots),
    )  # fmt: skip


def gpu_unavailable(box: Box, gpu: Device) -> Judgement | None:
    """The judgement of checks that need NVML for a GPU that it does not list; None if it lists the GPU."""
    if (nothing := nvml_unavailable(box)) is not None:
        return nothing
    return skip("dependency-failed", "NVML does not list this GPU") if gpu.index is None else None


def nvml_unavailable(box: Box) -> Judgement | None:
    """The judgement of checks that need NVML where it is not available; None if it is."""
    nvml = box.nvml
    if not isinstance(nvml, Missing):
        return None
    if nvml.gap is Gap.UNRECORDED:
        return unjudged(nvml)
    return skip("dependency-failed", f"NVML is not available: {nvml.where}: {nvml}")


def guest(box: Box) -> str | None:
    """The hypervisor that this machine is a guest of, in text by the mode of its GPUs; None on bare metal or where it
    is not known."""
    vm = box.snapshot.known_host.vm
    if not isinstance(vm, Missing):
        return vm
    modes = (board.virtualization for board in rows(box.snapshot.gpu_board))
    return "a hypervisor" if any(mode in GUEST_MODES for mode in modes) else None


def mig_enabled(box: Box, *bdfs: str | None) -> bool:
    """Is MIG on in one of these GPUs? A GPU in MIG mode has no NVLink and no P2P."""
    return any(row.mig is True and row.bdf in bdfs for row in rows(box.snapshot.gpu_modes))
