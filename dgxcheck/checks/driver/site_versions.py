"""Does the box run the versions that its site has pinned?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]


def _versions(box: Box) -> Judged:
    pinned = box.settings
    if not (pinned.driver or pinned.vbios or pinned.hca_firmware):
        yield HOST, skip("not-configured", "the configuration pins no version")
    if pinned.driver:
        yield replace(HOST, part="driver"), _driver(box)
    if pinned.vbios:
        for gpu in box.gpus:
            yield box.subject(gpu), gpu_unavailable(box, gpu) or _vbios(box, gpu)
    if pinned.hca_firmware:
        yield from _hcas(box)


def _driver(box: Box) -> Judgement:
    """NVML's word, else that of the module that is loaded."""
    if not isinstance(box.nvml, Missing) and not isinstance(box.nvml.driver_version, Missing):
        version = box.nvml.driver_version
        return _judged("driver", version, box.settings.driver, answered(version, "nvmlSystemGetDriverVersion", ""))
    modules = box.snapshot.modules
    loaded = modules if isinstance(modules, Missing) else modules.driver
    if isinstance(loaded, Missing):
        return unjudged(loaded)
    evidence = Evidence("/proc/driver/nvidia/version", loaded.version)
    return _judged("driver", loaded.version, box.settings.driver, evidence)


def _vbios(box: Box, gpu: Device) -> Judgement:
    listed = () if isinstance(box.nvml, Missing) else box.nvml.gpus
    version = next((each.vbios for each in listed if each.bdf == gpu.bdf), None)
    if version is None:
        return skip("not-recorded", "nothing is known of this GPU")
    if isinstance(version, Missing):
        return unjudged(version)
    return _judged("VBIOS", version, box.settings.vbios, answered(version, "nvmlDeviceGetVbiosVersion", gpu.bdf or ""))


def _hcas(box: Box) -> Judged:
    devices = box.snapshot.infiniband
    if isinstance(devices, Missing):
        yield replace(HOST, part="hca_firmware"), unjudged(devices)
        return
    own = [each for each in devices if each.is_vf is not True]  # a virtual function runs the firmware of its parent
    if not own:
        yield replace(HOST, part="hca_firmware"), skip("not-visible", "no HCA is visible here")
    for each in own:
        subject = Subject(kind="hca", name=each.name, bdf=None if isinstance(each.bdf, Missing) else each.bdf)
        if isinstance(each.fw_ver, Missing):
            yield subject, unjudged(each.fw_ver)
            continue
        evidence = Evidence(f"/sys/class/infiniband/{each.name}/fw_ver", each.fw_ver)
        yield subject, _judged("firmware", each.fw_ver, box.settings.hca_firmware, evidence)


def _judged(what: str, version: str, pinned: tuple[str, ...], evidence: Evidence) -> Judgement:
    due = " or ".join(pinned)
    runs = version.strip().lower() in {each.lower() for each in pinned}
    message = f"{what} {version}, pinned {due}"
    return Judgement(Status.PASS if runs else Status.WARN, message, version, due, "", (evidence,))


CHECKS = (
    Check(
        id="site.versions",
        rule="Warns where the driver, the VBIOS of a GPU or the firmware of an HCA is none of those that the"
        " configuration pins; judges nothing where it pins none.",
        source="[versions] of dgxcheck-config(5)",
        remedy="bring the device to the site's version, or add the new one to the configuration",
        judge=_versions,
    ),
)
