"""GPUDirect RDMA: what all preconditions together make of a pair of GPU and HCA."""

from __future__ import annotations

from typing import Literal

from dgxcheck.bandwidth.expected import through_port
from dgxcheck.bandwidth.links import as_it_is
from dgxcheck.bandwidth.rate import Limit, Rate
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import FAULTY
from dgxcheck.checks.engine.precondition import Precondition, State, deciding
from dgxcheck.checks.gpu.presence import LOST
from dgxcheck.checks.gpudirect import isolation, pcie_settings, software
from dgxcheck.checks.gpudirect import path as gdr_path
from dgxcheck.checks.gpudirect.isolation import acs, iommu
from dgxcheck.checks.gpudirect.path import bar1, bound_to_driver, link, path, port
from dgxcheck.checks.gpudirect.pcie_settings import iommu_groups, payload
from dgxcheck.checks.gpudirect.software import memlock, peer_memory, stack
from dgxcheck.checks.network.ports import port_gbs
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

Verdict = Literal["ready", "slow", "not ready", "cannot tell"]
_WORST: tuple[tuple[State, Verdict], ...] = (("no", "not ready"), ("?", "cannot tell"), ("slow", "slow"))
_REMEDIES = {
    check.id: check.remedy
    for subject in (isolation, pcie_settings, gdr_path, software)
    for check in subject.CHECKS
}


class Readiness(Record):
    """GPUDirect RDMA between one GPU and one HCA."""

    gpu: Device
    nic: Device
    verdict: Verdict
    preconditions: tuple[tuple[str, Precondition], ...]
    """Each with the id of its check."""
    expected: Rate
    """The lower of what the PCIe path, as trained, and the port carry in the slower direction."""
    limited_by: tuple[Limit, ...]

    @property
    def reasons(self) -> tuple[tuple[str, Precondition], ...]:
        """The preconditions that the verdict comes from; empty for a pair that is ready."""
        return deciding(self.preconditions, self.verdict, _WORST)


def remedy_of(id_: str, precondition: Precondition) -> str:
    """What to do about a precondition that is judged a fault; empty where it is a site's choice or none is known."""
    judgement = precondition.judgement
    return judgement.remedy or (_REMEDIES[id_] if judgement.status in FAULTY else "")


def readiness(box: Box, gpu: Device, nic: Device) -> Readiness:
    """The verdict of one pair; an undetermined precondition makes it ``cannot tell``, never ``ready``."""
    preconditions = (
        (LOST, bound_to_driver(box, gpu)), ("gdr.path", path(box, gpu, nic)),
        ("gdr.peer-memory", peer_memory(box, gpu)), ("gdr.stack", stack(box)), ("gdr.port", port(box, nic)),
        ("gdr.bar1", bar1(box, gpu)), ("gdr.iommu", iommu(box, [gpu, nic])), ("gdr.acs", acs(box, gpu, nic)),
        ("gdr.iommu-groups", iommu_groups(box, gpu, nic)), ("gdr.link", link(box, gpu, nic)),
        ("gdr.max-payload", payload(box, gpu, nic)), ("gdr.memlock", memlock(box)),
    )  # fmt: skip
    states = {precondition.state for _, precondition in preconditions}
    verdict: Verdict = next((verdict for state, verdict in _WORST if state in states), "ready")
    port_rate = port_gbs(box, nic) or Missing(Gap.ABSENT, f"/sys/class/infiniband/{nic.name}/ports", "no port is up")
    rate, limits = through_port(box, gpu, nic, port_rate, as_it_is(nic))
    return Readiness(
        gpu=gpu, nic=nic, verdict=verdict, preconditions=preconditions, expected=rate, limited_by=limits
    )  # fmt: skip
