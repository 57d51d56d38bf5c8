"""The firmware of the HCAs."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.blame import host_if_all, part
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject
from dgxcheck.checks.engine.per_gpu import need, ruled
from dgxcheck.checks.network.hcas import hcas, in_flash_recovery, none_here, subject
from dgxcheck.checks.siblings.compare import Compared, compared
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Missing

Judged = Iterator[tuple[Subject, Judgement]]


def _firmware(box: Box) -> Judged:
    for function in in_flash_recovery(box):
        yield Subject(kind="hca", name=function.bdf, bdf=function.bdf), Judgement(
            Status.FAIL, "in flash recovery: the adapter runs no firmware", fault=Fault.HCA_FLASH_RECOVERY,
            evidence=(Evidence(f"/sys/bus/pci/devices/{function.bdf}/device", f"{function.device:#06x}"),),
            remedy=f"burn the firmware image of its board (mstflint -d {function.bdf} -i IMAGE burn), then cold power"
            " cycle; replace the adapter if it stays in flash recovery",
        )  # fmt: skip
    devices = hcas(box)
    if isinstance(devices, Missing):
        yield HOST, none_here(devices)
        return
    versions = {each.sibling.subject: each for each in compared(box, ["hca"], ["IbDevice.fw_ver"])}
    for device in devices:
        at = subject(device)
        yield at, ruled(_version, device, versions.get(at))


def _version(device: IbDevice, among: Compared | None) -> Judgement:
    version, files = need(device.fw_ver), f"/sys/class/infiniband/{device.name}"
    evidence: tuple[Evidence, ...] = (Evidence(f"{files}/fw_ver", version),)
    board = "this model"
    if isinstance(device.board_id, str):
        board, evidence = f"board {device.board_id}", (*evidence, Evidence(f"{files}/board_id", device.board_id))
    if among is None or not among.odd:
        return Judgement(Status.PASS, f"firmware {version}", version, version, evidence=evidence)
    usual = str(among.usual) if among.majority else None
    others = f"other HCAs of {board} run {usual}" if usual else f"HCAs of {board} run different versions"
    message = f"firmware {version}, {others}"
    return Judgement(Status.WARN, message, version, usual, evidence=evidence, fault=Fault.HCA_FIRMWARE)


CHECKS = (
    Check(
        id="network.firmware",
        rule="Warns on an HCA whose firmware differs from the version that most HCAs of its model and board_id run; on"
        " each of them if there is no majority. Fails on an adapter in flash recovery, by its PCI device id.",
        source="fw_ver and board_id of /sys/class/infiniband; pci.ids",
        remedy="burn the version that the others run (mstflint -d BDF -i IMAGE burn) while no job uses the adapter,"
        " then reset it (mlxfwreset -d BDF reset)",
        judge=_firmware,
        blames=part("firmware"),
        shared=host_if_all("firmware of HCAs"),
    ),
)
