"""By the rows of the facts alone, in every record of a device or of the host, whichever field of a snapshot holds it:
identities that two devices share, and states that are not good where no check knows more than the row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from dgxcheck.checks.consistency.contradiction import NOTHING_TO_COMPARE
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, host, part, remedy_of
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, counted, skip
from dgxcheck.components.device_facts import records
from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import NetInterface
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.nvml.gpu import Gpu
from dgxcheck.facts.pci import Bar
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.facts.values import Rows, Value, as_json, described, is_inside, label, leaves, text, where

_BLANK = frozenset("0 :.-")
"""An identity of these characters alone was never written."""
_TWO_ON_A_BOARD = ("GB200", "GB300")
"""A Grace superchip has two GPUs and one serial number."""
SETTINGS = "versions and settings"
_LEAST_OTHERS = 2
"""Devices with a value of their own, beside which two that share one are a finding where others may share."""
_Owner = tuple[tuple[str, ...], Record, Rows, Value]


def duplicates(identities: Iterable[list[_Owner]]) -> Iterator[list[_Owner]]:
    """The devices that share an identity, of the owners of each."""
    for owners in identities:
        by_card = {(_card(each), str(each[3]).lower()): each for each in owners}
        counts = Counter(value for _, value in by_card)
        may_share = any("shared" in row.more for row in owners[0][2])
        pairs = [value for value, count in counts.items() if count > 1]
        alone = sum(count == 1 for count in counts.values())
        if pairs and (not may_share or (len(pairs) == 1 and counts[pairs[0]] == 2 and alone >= _LEAST_OTHERS)):
            for value in pairs:
                yield [each for (_, own), each in by_card.items() if own == value]


def _identities(box: Box) -> Collection[list[_Owner]]:
    """The owners of each identity."""
    found: dict[tuple[type[Record], Rows], list[_Owner]] = {}
    serials, joined = _serials(box), {row.mac for row in rows(box.snapshot.network) if isinstance(row.bdf, Missing)}
    for keys, record in records(box.snapshot):
        if (isinstance(record, IbDevice) and record.is_vf is True) or (isinstance(record, Bar) and record.is_io):
            continue  # each PCI domain may have I/O ports of its own
        if isinstance(record, NetInterface) and (isinstance(record.bdf, Missing) or record.mac in joined):
            continue  # those that a bond or bridge has joined have its address
        for _, of, value in leaves(record, _is_identity):
            of_board = isinstance(record, Gpu) and of[-1].name == "serial" and record.bdf not in serials
            if not _is_own(of[-1]) or of_board or _is_blank(of, value):
                continue
            found.setdefault((type(record), of), []).append((keys, record, of, value))
    return found.values()


def _is_identity(row: Fact) -> bool:
    return row.nature == "holder" or _is_own(row)


def _is_own(row: Fact) -> bool:
    return "unique" in row.more or (row.nature == "identity" and "any" not in row.more)


def _is_blank(of: Rows, value: Value) -> bool:
    if isinstance(value, str | tuple):
        return set(value) <= _BLANK
    return not value and "zero" not in of[-1].more


def _card(owner: _Owner) -> object:
    """The functions of one card share its image GUID, and a device its own BAR; else the record itself.

    Without a bus id (ibstat) those that share it are one card.
    """
    keys, record, of, _ = owner
    bdf = getattr(record, "bdf", keys[0] if keys else None)
    if any("card" in row.more for row in of):
        return card_of(bdf) if isinstance(bdf, str) else None
    return (type(record), *keys)


def _name(box: Box, owner: _Owner) -> str:
    keys, record, _, _ = owner
    bdf = getattr(record, "bdf", keys[0] if keys else None)
    device = box.topology.device(bdf) if isinstance(bdf, str) and not isinstance(record, NetInterface) else None
    return " ".join(keys) if device is None else device.name


def _serials(box: Box) -> set[str]:
    """Bus ids of GPUs that are alone on their board: the two of a K80 or of a Grace superchip share its number."""
    listed = box.snapshot.listed_gpus
    serials = [row.serial for row in listed if isinstance(row.serial, str)]
    if all(serials.count(serial) == 2 for serial in serials):
        return set()
    boards = {row.bdf: box.gpu(row.bdf).board for row in listed}
    return {
        row.bdf for row in listed
        if not (isinstance(row.name, str) and any(word in row.name for word in _TWO_ON_A_BOARD))
        and (isinstance(board := boards[row.bdf], Missing) or board.multi_gpu is not True)
    }  # fmt: skip


def _unique(box: Box) -> Judged:
    """Warns if two devices of a kind share an identity: UUID, minor number, serial number or board of a GPU, node or
    image GUID of an HCA, MAC address, address of a BAR, name of a memory controller. The two GPUs of a K80 board and of
    a Grace superchip share a serial number, the functions of an adapter its image GUID, the interfaces of a bond an
    address.

    Source: NVML: UUIDs are globally unique; InfiniBand Architecture Specification, EUI-64; the rows of the nature
    identity
    """
    asked = {gpu.name for gpu in box.gpus}
    others = {gpu.name for gpu in box.topology.gpus} - asked
    identities = _identities(box)
    shared = (([_name(box, owner) for owner in owners], owners) for owners in duplicates(identities))
    found = [(names, owners) for names, owners in shared if not {*names} <= others]
    for names, owners in found:
        device = box.topology.device(names[0])
        subject = box.subject(device) if device is not None and device.kind == "gpu" else HOST
        message = f"{', '.join(names)} have the same {label(owners[0][2])}"
        evidence = tuple(Evidence(where(record, of), str(value)) for _, record, of, value in owners)
        at = replace(subject, part=",".join(names[1:] if subject.kind == "gpu" else names))
        remedy = "" if "flashed" in owners[0][2][-1].more else remedy_of("consistency.unique", "given out")
        yield at, Judgement(
            Status.WARN, message, len(names), 1, "devices", evidence, fault=Fault.CONTRADICTION, remedy=remedy
        )
    if not found:
        alone = Judgement(Status.PASS, "every identity is of one device alone")
        yield HOST, alone if any(len(owners) > 1 for owners in identities) else NOTHING_TO_COMPARE


def subject(box: Box, keys: tuple[str, ...], record: Record) -> Subject:
    """The GPU, adapter or PCI function that a record is of; else the host, with the keys as its part."""
    bdf = getattr(record, "bdf", next((key for key in keys if key in box.topology.functions), None))
    return box.subject_at(bdf) if isinstance(bdf, str) else replace(HOST, part=" ".join(keys))


def _judged_here(row: Fact) -> bool:
    return is_inside(row) or ("good" in row.more and "by" not in row.more and "differs" not in row.more)


def _states(box: Box) -> Judged:
    """Warns if a state is none of those that are good where no other check judges it: a kernel module that is stuck
    while it loads or goes.

    Source: the rows of the facts; linux/kernel/module/sysfs.c, show_initstate: live, coming, going
    """
    states = [(keys, record, leaf) for keys, record in records(box.snapshot) for leaf in leaves(record, _judged_here)]
    judged = [each for each in states if each[2][1][-1].more.get("good") is not None]
    bad = gathered((subject(box, keys, record), (record, leaf)) for keys, record, leaf in judged
                   if leaf[2] not in leaf[1][-1].more["good"])  # fmt: skip
    for at, those in bad.items():
        words = (f"{described(of, value)}, not {' or '.join(text(of, each) for each in of[-1].more['good'])}"
                 for _, (_, of, value) in those)  # fmt: skip
        evidence = tuple(Evidence(where(record, leaf[1]), as_json(leaf[2])) for record, leaf in those)
        message = f"{at.part}: {'; '.join(words)}"
        yield at, Judgement(Status.WARN, message, evidence=evidence, fault=Fault.MODULE_STUCK)
    if not bad:
        good = Judgement(Status.PASS, f"{counted(len(judged), 'state')} as good as they can be")
        yield HOST, good if judged else skip("not-recorded", "no state was read that is judged here")


CHECKS = (
    Check("consistency.unique", _unique,
        lambda box, at, judgement: part("identities" if at.kind == "host" else SETTINGS)(box, at, judgement)),
    Check("consistency.state", _states, host("kernel module")),
)  # fmt: skip
