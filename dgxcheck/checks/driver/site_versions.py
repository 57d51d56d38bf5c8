"""Does the box run the versions that its site pins?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dgxcheck.checks.engine.blame import host, itself
from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.components.component import Component
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Missing, need
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]


def _versions(box: Box) -> Judged:
    pinned = box.settings
    if not (pinned.driver or pinned.vbios or pinned.hca_firmware):
        yield HOST, skip("not-configured", "the configuration pins no version")
    if pinned.driver:
        yield replace(HOST, part="driver"), ruled(_driver, box)
    if pinned.vbios:
        for gpu in box.gpus:
            yield box.subject(gpu), gpu_unavailable(box, gpu) or ruled(_vbios, box, gpu)
    if pinned.hca_firmware:
        yield from _hcas(box)


def _driver(box: Box) -> Judgement:
    """As NVML reports it, else the version of the loaded kernel module."""
    if not isinstance(box.nvml, Missing) and not isinstance(box.nvml.driver_version, Missing):
        version = box.nvml.driver_version
        return _compare("driver", version, box.settings.driver, answered(version, "nvmlSystemGetDriverVersion", ""))
    version = need(need(box.snapshot.modules).driver).version
    return _compare("driver", version, box.settings.driver, Evidence("/proc/driver/nvidia/version", version))


def _vbios(box: Box, gpu: Device) -> Judgement:
    version = need(need(box.gpu(gpu).listed).vbios)
    return _compare("VBIOS", version, box.settings.vbios, answered(version, "nvmlDeviceGetVbiosVersion", gpu.bdf or ""))


def _hcas(box: Box) -> Judged:
    devices = box.snapshot.infiniband
    if isinstance(devices, Missing):
        yield replace(HOST, part="hca_firmware"), unjudged(devices)
        return
    hcas = [hca for hca in devices if hca.is_vf is not True]  # a virtual function runs the firmware of its parent
    if not hcas:
        yield replace(HOST, part="hca_firmware"), skip("not-visible", "no HCA is visible")
    for hca in hcas:
        subject = Subject(kind="hca", name=hca.name, bdf=None if isinstance(hca.bdf, Missing) else hca.bdf)
        yield subject, ruled(_firmware, box, hca)


def _firmware(box: Box, hca: IbDevice) -> Judgement:
    version = need(hca.fw_ver)
    evidence = Evidence(f"/sys/class/infiniband/{hca.name}/fw_ver", version)
    return _compare("firmware", version, box.settings.hca_firmware, evidence)


def _compare(what: str, version: str, pinned: tuple[str, ...], evidence: Evidence) -> Judgement:
    accepted = " or ".join(pinned)
    matches = version.strip().lower() in {pin.lower() for pin in pinned}
    status, fault = (Status.PASS, None) if matches else (Status.WARN, Fault.VERSION)
    return Judgement(status, f"{what} {version}, pinned {accepted}", version, accepted, "", (evidence,), fault=fault)


def _blame(box: Box, subject: Subject, judgement: Judgement) -> Iterable[Component]:
    return (host("versions") if subject.kind == "host" else itself)(box, subject, judgement)


CHECKS = (
    Check(
        id="site.versions",
        rule="Warns if the version of the driver, of a GPU's VBIOS or of an HCA's firmware is not one that the"
        " configuration pins. Without pinned versions nothing is judged.",
        source="[versions] of dgxcheck-config(5)",
        remedy="install the pinned version, or add the new version to the configuration",
        judge=_versions,
        blames=_blame,
    ),
)
