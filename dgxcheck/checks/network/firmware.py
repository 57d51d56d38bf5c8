"""The firmware of the HCAs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from dgxcheck.checks.engine.blame import part
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject
from dgxcheck.checks.engine.per_gpu import need, ruled
from dgxcheck.checks.network.hcas import hcas, in_flash_recovery, none_here, subject
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
    by_board: dict[str, list[IbDevice]] = defaultdict(list)
    for device in devices:
        by_board[device.board_id if isinstance(device.board_id, str) else f"unknown, {device.name}"].append(device)
    for same in by_board.values():
        versions = Counter(device.fw_ver for device in same if isinstance(device.fw_ver, str))
        usual = max(versions, key=lambda version: (versions[version], _numbers(version)), default="")
        for device in same:
            yield subject(device), ruled(_version, device, usual)


def _numbers(version: str) -> tuple[int, ...]:
    """``12.28.2006`` as numbers, so that it sorts after ``12.9.0``."""
    return tuple(int(number) for number in version.split(".") if number.isdecimal() and len(number) < 10)


def _version(device: IbDevice, usual: str) -> Judgement:
    version, board = need(device.fw_ver), need(device.board_id)
    files = f"/sys/class/infiniband/{device.name}"
    evidence = (Evidence(f"{files}/fw_ver", version), Evidence(f"{files}/board_id", board))
    if version == usual:
        return Judgement(Status.PASS, f"firmware {usual}", usual, usual, evidence=evidence)
    message = f"firmware {version}, other HCAs of board {board} run {usual}"
    return Judgement(Status.WARN, message, version, usual, evidence=evidence, fault=Fault.HCA_FIRMWARE)


CHECKS = (
    Check(
        id="network.firmware",
        rule="Warns on an HCA whose firmware differs from the version that most HCAs of its board_id run, or from the"
        " newest if there is no majority; fails on an adapter in flash recovery, by its PCI device id.",
        source="fw_ver and board_id of /sys/class/infiniband; pci.ids",
        remedy="burn the version that the others run (mstflint -d BDF -i IMAGE burn) while no job uses the adapter,"
        " then reset it (mlxfwreset -d BDF reset)",
        judge=_firmware,
        blames=part("firmware"),
    ),
)
