"""HCAs and the modules of their ports, by the kernel log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, itself
from dgxcheck.checks.engine.expected import is_spark
from dgxcheck.checks.engine.finding import Instead, Judged, Judgement, Status, Subject, counted, judged, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import duration, flaps
from dgxcheck.checks.kernel_log.device_log import events_of, grouped, happened, lines, reach
from dgxcheck.checks.kernel_log.pcie import links_lost_above
from dgxcheck.checks.network.ports import NO_HCAS, hcas, port_subject, ports, subject
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.containment import functions_beside, gpus_behind
from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.faults import BY_WORD, DEVICE_DEAD, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import IbDevice, IbPort
from dgxcheck.facts.kernel_log import HcaEvent, HcaTrouble, KernelLog, is_near
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.record import Record
from dgxcheck.package_files import table
from dgxcheck.xid.relations import WINDOW_S

_DRIVER = "mlx5_core"


class _Meaning(Record, kw_only=False):
    status: Status
    fault: FaultKind
    text: str
    remedy: str


@cache
def _meanings() -> Mapping[str, _Meaning]:
    """By what the driver logs, the worst first."""
    return {row["trouble"]: _Meaning(Status(row["status"]), BY_WORD[row["fault"]], row["text"], row["remedy"])
            for row in table("checks/kernel_log/hca.tsv")}  # fmt: skip


def hca_status(trouble: HcaTrouble) -> Status:
    """Of one line by itself. A port without a cable is no trouble; ``network.port-state`` judges one that needs it."""
    known = _meanings().get(trouble)
    return known.status if known is not None else Status.PASS if trouble == "unplugged" else Status.WARN


def _hcas(box: Box) -> Judged:
    """Fails if mlx5_core logged, since it last took over an adapter, that it could not start it, that its PCI slot is
    unavailable or that its firmware stopped responding (a health issue of severity 0 to 2); warns on one of severity 3,
    if it recovered such firmware twice within the last day, on a transmit queue that timed out, and if it is too hot
    (severity 4, too) or the slot reports insufficient power, which on a DGX Spark means nothing. Registers that may not
    be read (ACCESS_REG) are not a fault.

    Source: Linux drivers/net/ethernet/mellanox/mlx5/core: main.c, health.c, events.c, en_main.c; for the power of a DGX
    Spark https://github.com/NVIDIA/dgx-spark-playbooks/pull/108
    """
    log = box.snapshot.kernel_log
    subjects = {device.bdf: subject(device) for device in rows(hcas(box)) if isinstance(device.bdf, str)}
    if isinstance(log, Missing):
        raise Instead(unjudged(log) if subjects else NO_HCAS)
    meant = _meanings().keys() - ({"power"} if is_spark(box) else set())
    events = [event for event in log.hcas if event.trouble in meant]
    for bdf in sorted({event.bdf for event in events} - subjects.keys()):
        subjects[bdf] = Subject(kind="hca", name=bdf, bdf=bdf)
    for bdf, at in subjects.items():
        function = box.topology.functions.get(bdf)
        driver = function.driver if function is not None else None
        own = [event for event in events if event.bdf == bdf]
        if isinstance(driver, str) and driver != _DRIVER and not own:
            yield at, skip("not-supported", f"messages of its driver, {driver}, are not read")
        else:
            yield at, _hca(box, log, own)
    if not subjects:
        yield HOST, NO_HCAS


def _hca(box: Box, log: KernelLog, events: Sequence[HcaEvent]) -> Judgement:
    now = [event for event in events if not event.past]
    troubles = [trouble for trouble in _meanings() if any(event.trouble == trouble for event in now)]
    if not troubles and (again := flaps(box, [event for event in events if event.trouble == "firmware"], 1)):
        health, number = _meanings()["health"], counted(len(again), "time")
        message = f"its firmware stopped responding {number} within a day, and mlx5_core started it again{reach(log)}"
        figures = (len(again), 1, "a day", lines(log, again))
        return judged(health.fault, message, *figures, warns=True, remedy=health.remedy.format(bdf=again[0].bdf))
    if not troubles:
        return Judgement(Status.PASS, f"no hardware errors logged{reach(log)}")
    worst = _meanings()[troubles[0]]
    about = [event for event in now if event.trouble == troubles[0]]
    also = [trouble for trouble in troubles[1:] if trouble != "health"]  # what is worse is dead, which says it
    meanings = "; ".join(_meanings()[each].text for each in (troubles[0], *also))
    bdf = about[0].bdf
    gpus = ", ".join(gpus_behind(box.topology, [bdf]))
    beside = ", ".join(functions_beside(box.topology, [bdf]))
    whole = f"reset it with {beside}, which is on the same chip" if beside else "reset it" if gpus else "reset it alone"
    reset = f"end the work on {gpus}, whose PCIe switch it is, and {whole}" if gpus else whole
    message = f"{meanings}; {about[0].text.rstrip('.')}{reach(log)}"
    hot = worst.fault is Fault.HCA_UNRESPONSIVE and "temperature" in troubles
    cool = f"{_meanings()['temperature'].remedy}, for it was too hot; then " if hot else ""
    return Judgement(
        worst.status, message, len(now), 0, "lines", lines(log, about), fault=worst.fault,
        remedy=cool + worst.remedy.format(bdf=bdf, reset=reset),
        events=happened(about, "device") if worst.fault in DEVICE_DEAD else (),
    )  # fmt: skip


def _modules(box: Box) -> Judged:
    """Warns if mlx5_core logged an error of the cable or transceiver in a port, such as High Temperature or Bus stuck,
    or the kernel (from Linux 6.15 on) that the port went down more than {network.flaps} within the last day, since the
    driver took over the adapter or since a module was plugged in; the first minutes after boot apart, and not of
    Ethernet, which host.carrier judges. Those that follow one another within half a minute are one.

    Source: Port module event[error] in Linux drivers/net/ethernet/mellanox/mlx5/core/events.c; Link DOWN in
    drivers/infiniband/core/cache.c; gpud: three in 12 hours are a flap
    """
    listed = ports(box)
    events = [event for event in box.log.hcas if event.trouble in _OF_PORTS]
    if isinstance(listed, Judgement):
        for bdf, own in grouped((event.bdf, event) for event in events).items():
            downs = [event.text.replace(" port ", "/") for event in own if event.trouble == "link down"]
            downs += [each.part for each in events_of(box.log, "link down") if bdf in each.line]
            name = downs[-1] if downs else bdf
            at = Subject(kind="port" if downs else "hca", name=name, bdf=bdf)
            yield at, _module(box, box.log, own)
        if not events:
            yield HOST, listed
        return
    log = need(box.snapshot.kernel_log)
    for device, port in listed:
        yield port_subject(device, port), _module(box, log, _of_port(box, listed, device, port))


def _of_port(box: Box, listed: Sequence[tuple[IbDevice, IbPort]], device: IbDevice, port: IbPort) -> list[HcaEvent]:
    """What the log says of this port and the module in it."""
    alone = sum(each.bdf == device.bdf for each, _ in listed) == 1
    return [event for event in box.log.hcas if event.trouble in _OF_PORTS and event.bdf == device.bdf
            and (alone or event.module == port.port - 1)
            and (port.link_layer != "Ethernet" or event.trouble != "link down")]  # fmt: skip


_OF_PORTS: tuple[HcaTrouble, ...] = ("module", "link down")


def _module(box: Box, log: KernelLog, events: Sequence[HcaEvent]) -> Judgement:
    limit = box.settings.limit("network.flaps")
    downs = [event for event in events if event.trouble == "link down" and not event.past]
    events = [event for event in events if event.trouble == "module"]
    now = [event for event in events if not event.past]
    if not now and (often := flaps(box, downs, limit)):
        when = f"within {duration(often[-1].seconds - often[0].seconds)}"
        message = f"went down {counted(len(often), 'time')} {when} ({limit:g} a day allowed){reach(log)}"
        evidence = lines(log, often)
        return judged(Fault.PORT_ERRORS, message, len(often), limit, "a day", evidence, warns=True)
    if not now:
        message = "module or cable was replaced since its last error" if events else "no module errors logged"
        return Judgement(Status.PASS, f"{message}{reach(log)}")
    message = f"module or cable: {', '.join(dict.fromkeys(event.text for event in now))}{reach(log)}"
    return judged(Fault.PORT_MODULE, message, len(now), 0, "lines", lines(log, now), warns=True)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The adapter, or a link above it that failed with it; where its sensors are hot also a module of it that reported
    the same within seconds."""
    yield from itself(box, at, judgement)
    yield from links_lost_above(box, at, judgement)
    listed = ports(box)
    if judgement.fault is not Fault.HCA_OVERHEATING or isinstance(listed, Judgement):
        return
    hot = [event.seconds for event in box.log.hcas if event.bdf == at.bdf and event.trouble == "temperature"]
    for device, port in listed:
        modules = _of_port(box, listed, device, port) if device.bdf == at.bdf else []
        heat = [event.seconds for event in modules if event.text.endswith(HOT_MODULE) and not event.past]
        if any(is_near(each, hot, WINDOW_S) for each in heat):
            yield from itself(box, port_subject(device, port), judgement)


def _of_adapters(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """The air that adapters share, what supplies their slots, and their driver, which starts none."""
    cards = {card_of(event.bdf) for event in box.log.hcas if event.trouble == "not started" and not event.past}
    if judgement.fault is Fault.HCA_NOT_STARTED and len(cards) > 1:
        return host_part("HCA driver")
    return _SHARED.get(judgement.fault) if judgement.fault is not None else None


_COOLING = host_part("cooling")
_SHARED: Mapping[FaultKind, Component] = {
    Fault.HCA_OVERHEATING: _COOLING, Fault.HCA_POWER: host_part("power of PCIe slots"),
}  # fmt: skip


def _of_modules(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """The air, where heat is all that the modules of the adapter report."""
    texts = {each.text for each in box.log.hcas if each.bdf == at.bdf and each.trouble == "module" and not each.past}
    return _COOLING if texts and all(text.endswith(HOT_MODULE) for text in texts) else None


HOT_MODULE = "High Temperature"
"""As Linux drivers/net/ethernet/mellanox/mlx5/core/events.c words it."""


CHECKS = (
    Check("kernel.hca", _hcas, _blames, _of_adapters),
    Check("kernel.port-module", _modules, shared=_of_modules),
)  # fmt: skip
