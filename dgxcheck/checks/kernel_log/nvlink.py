"""What the driver logged of NVLinks as a whole: links that it did not detect, a fabric that it no longer knows."""

from __future__ import annotations

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, judged
from dgxcheck.checks.kernel_log.device_log import events_of, lines, reach
from dgxcheck.components.component import DRIVER, FABRIC_MANAGER
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import HostTrouble
from dgxcheck.facts.missing import need
from dgxcheck.facts.record import replace

_FORMS: dict[HostTrouble, tuple[FaultKind, str]] = {
    "nvlink": (Fault.NVLINK_UNDETECTED, "could not detect which NVLinks of a GPU are connected"),
    "fabric": (Fault.FABRIC_OUT_OF_SYNC, "the driver's state of the NVSwitch fabric is out of date, NVLS fails"),
}


def _nvlinks(box: Box) -> Judged:
    """Warns if the driver logged, since it was last loaded, that it could not detect which NVLinks of a GPU are
    connected: peer transfers then take PCIe, and programs may hang; or that the state of the NVSwitch fabric that it
    knows is out of date, as after a restart of the fabric manager while jobs ran: NCCL then fails to set up NVLS.

    Source: NVIDIA's open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/nvlink/kernel_nvlink.c and
    mem_mgr/mem_multicast_fabric.c
    """
    log = need(box.snapshot.kernel_log)
    found = {trouble: [event for event in events_of(log, trouble) if not event.past] for trouble in _FORMS}
    if not any(found.values()):
        yield HOST, Judgement(Status.PASS, f"no failure to detect NVLinks logged{reach(log)}")
    for trouble, (fault, message) in _FORMS.items():
        if events := found[trouble]:
            at = HOST if trouble == "nvlink" else replace(HOST, part=trouble)
            text, evidence = f"{message}{reach(log)}", lines(log, events)
            yield at, judged(fault, text, len(events), 0, "", evidence, warns=True, remedy=fault.remedy)


CHECKS = (
    Check("kernel.nvlink", _nvlinks, lambda box, at, judgement: (FABRIC_MANAGER if at.part else DRIVER,),
        remedy="nvidia-smi nvlink -s; compare all GPUs, and their GPU Recovery Action in nvidia-smi -q"),
)  # fmt: skip
