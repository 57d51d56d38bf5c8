"""Could everything be read that the reference machine has numbers of?"""

from __future__ import annotations

from collections.abc import Callable

from dgxcheck.checks.engine.box import HOST, Box, guest
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, skip
from dgxcheck.checks.engine.host_limits import in_container
from dgxcheck.facts.host import Host, Storage
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.survey import Snapshot

Layer = Callable[[Snapshot], object]


def _host(facts: Snapshot, name: str) -> object:
    return getattr(facts.host, name) if isinstance(facts.host, Host) else facts.host


def _disks(facts: Snapshot) -> object:
    return facts.storage.disks if isinstance(facts.storage, Storage) else facts.storage


LAYERS: tuple[tuple[str, str, Layer], ...] = (
    ("CPUs", "host.cores", lambda facts: _host(facts, "cpu")),
    ("memory", "host.memory", lambda facts: _host(facts, "memory_kb")),
    ("NUMA nodes", "host.sockets", lambda facts: facts.numa),
    ("disks", "host.data", _disks),
    ("network interfaces", "host.ethernet", lambda facts: facts.network),
    ("HCAs", "network.hcas", lambda facts: facts.infiniband),
)
"""What is read, the number of the profile that is about it, and its facts."""


def _answers(box: Box) -> Judged:
    if box.choice is None or box.choice.how == "gpus":
        yield HOST, skip("no-reference", "no matching reference machine")
        return
    for words, key, layer in LAYERS:
        number, facts = box.choice.number(key), layer(box.snapshot)
        if number is not None and number.value:
            yield replace(HOST, part=words), _of_layer(box, words, facts)


def _of_layer(box: Box, words: str, facts: object) -> Judgement:
    if not isinstance(facts, Missing):
        return Judgement(Status.PASS, f"{words} readable")
    evidence = Evidence(facts.where, facts.reason)
    if facts.gap in (Gap.UNRECORDED, Gap.UNASKED):
        return skip("not-recorded", f"{words}: {facts.where}: {facts}", evidence)
    if in_container(box) or guest(box) is not None:
        return skip("not-visible", f"a container or virtual machine may hide {words}: {facts}", evidence)
    message = f"{words} could not be read: {facts.where}: {facts}"
    return Judgement(Status.UNKNOWN, message, evidence=(evidence,))


CHECKS = (
    Check(
        id="host.answers",
        rule="Unknown if CPUs, memory, NUMA nodes, disks, network interfaces or HCAs of a machine that has a reference"
        " machine cannot be read. Not judged in containers and virtual machines.",
        source="/proc, /sys; the profile's numbers of the host",
        remedy="run dgxcheck as root, outside of confinement (AppArmor, snap, a mount namespace without /sys)",
        judge=_answers,
    ),
)
