"""What cluster monitors say of a node: conditions and events of Kubernetes (``kubectl
describe node``, ``get nodes``, ``get events``), health events of NVSentinel and gpud.

What is said counts as a fault only where it names one of a device. Members of the JSON: NVSentinel's health events
(https://github.com/NVIDIA/NVSentinel, data-models/protobufs/health_event.proto), events of gpud's API
(https://github.com/leptonai/gpud, api/v1); its words of ports: CheckPortsAndRate, pkg/nvidia-query/infiniband.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from dgxcheck.facts.bdf import as_bdf, nameless
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import BadInput, Json, items_of, members_of
from dgxcheck.facts.node_lists import unfolded
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.dcgm.messages import XID_NUMBER, fault_of, of_xid
from dgxcheck.readers.formats import Document, documents
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import bounded
from dgxcheck.readers.wording import Wording, any_of, wordings

_CONDITION = LazyPattern(
    r"(?P<type>[A-Z]\w{2,60}) {1,40}(?P<status>True|False|Unknown) {1,20}"
    r"(?P<times>(?:(?:[A-Z][a-z]{2}, )?\d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4} {1,12}){1,2})"
    r"(?P<reason>\S{1,80})(?: {1,60}(?P<message>\S.{0,600}))?"
)
_SOUND = LazyPattern(r"\w{0,60}(?<!Not)Ready|\w{0,60}Healthy\w{0,60}|EtcdIsVoter")
"""Types that a healthy node has as True, as those of EKS (``AcceleratedHardwareReady``,
https://docs.aws.amazon.com/eks/latest/userguide/node-health.html); every other type names a problem."""
_HELD_BACK = "the device plugin calls the others unhealthy; its log names them with the Xid"
_EVENT = LazyPattern(
    r"(?:[a-z0-9-]{1,63} {1,60})?\S{2,20} {1,20}Warning {1,20}(?P<reason>[A-Z]\w{2,60}) {1,20}"
    r"(?:[Nn]ode/(?P<node>[\w.-]{1,253}) {1,60}(?:[\w.-]{1,63}(?:, [\w.-]{1,253})? {2,60})?"
    r"|[Pp]od/[\w.-]{1,253} {1,40}(?=.{0,300}\bnvidia\.com/gpu))(?P<message>\S.{0,600})"
)
_CODE = wordings("host/logged", "NVSentinel")
"""In NVSentinel's messages, wherever they stand."""
_KUBELET = wordings("host/logged", "kubelet")
"""In events of pods, and in the log of kubelet: pkg/kubelet/cm/dra/plugin, cm/devicemanager/manager.go."""
_AT = LazyPattern(r"\bPCI:(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\b")
_RESOURCES = LazyPattern(r"\"?(?P<which>[Cc]apacity|[Aa]llocatable)\"?: ?\{?")
_COUNT = LazyPattern(r"\"?nvidia\.com/gpu\"?:? {1,60}\"?(?P<count>\d{1,3})\b.*")
"""Of ``kubectl describe node``, and of ``kubectl get node`` as YAML or JSON, which begins with what is allocatable."""
_DETECTED = LazyPattern(any_of("host/lines", "Xid of monitors"))
"""As gpud words an Xid, ``XID 48 (..) detected on GPU PCI:0000:3b:00``, and NVIDIA's device plugin; what go-nvml
answers of a GPU that is lost."""
_OFFERED = wordings("host/logged", "health monitor")
"""Of the device plugin about its host or a GPU, and of gpud about ports."""
_GPU = LazyPattern(r"\b(?:GPU[ :=_]{0,2}|nvml\.Device )(?P<gpu>\d{1,2})\b(?![.:]\d)")


_POD = LazyPattern(
    rf"(?:\S{{1,63}} {{1,40}})?(?P<pod>(?:{any_of('host/lines', 'pods')})[\w.-]{{0,120}})"
    r" {1,60}\d{1,2}/\d{1,2} {1,20}(?P<state>[A-Z][\w:/]{3,40}) {1,40}\d{1,6}(?: \(.{1,30}\))? {1,30}\d.{0,200}"
)
_NODE = LazyPattern(
    r"(?P<node>[a-z0-9][\w.-]{0,252}) {1,60}(?P<state>(?:Not)?Ready|Unknown)(?:,SchedulingDisabled)? {1,40}\S{1,120}"
    r" {1,40}\d\w{1,12} {1,20}v1\.\d{1,2}\..{1,300}"
)
"""Of ``kubectl get nodes``."""
_AROUND = LazyPattern(any_of("host/lines", "kubectl"))
"""Heads of tables, and resources that are no GPUs."""


_OF_CONDITION = {"type", "status", "reason", "lastHeartbeatTime"}
"""Of objects in Kubernetes nodes alone have conditions with that time: NodeCondition,
https://github.com/kubernetes/api, core/v1/types.go."""
_MEMBERS = ("events", "states", "health")
_BAD = frozenset({"Warning", "Critical", "Fatal", "Unhealthy", "Degraded"})
"""Types of events, and states."""


_MOST_LISTED = 10_000
"""Nodes of the lists of one text, each with what a line says of it."""


class Entry(Record, kw_only=False):
    """A condition or event of a node."""

    node: str
    """Or a list of nodes, as Slurm writes it; empty where none is named."""
    lines: tuple[int, ...]
    topic: str
    text: str
    gpu: str = ""
    """Its bdf, where the line has it."""
    fatal: bool = False
    """By the monitor itself, which takes it back when it is over."""


def logged(known: Iterable[Wording], number: int, line: str) -> Entry | None:
    """What the first of these stands for whose words a line is, of the node that it names."""
    for row in known:
        if match := row.words.search(line):
            groups = match.groupdict("")
            topic, text = (words.format(**groups) for words in (row.topic, row.text))
            return Entry(groups.get("node", ""), (number,), topic.lower(), text)
    return None


def read_kubernetes(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Conditions that are not as they should be, and warnings about nodes."""
    lines = bounded(lines)
    return of_nodes("Kubernetes", chain(_conditions(lines), _of_json(lines)))


def _of_json(lines: tuple[str, ...]) -> Iterator[Entry]:
    """The conditions of ``kubectl get node -o json``, of one node or a list of them, or taken out of it."""
    for found, where in documents(
        lines, lambda each: each.get("kind") == "Node" or "items" in each or each.keys() >= _OF_CONDITION
    ):
        if found.keys() >= _OF_CONDITION:
            yield _entry("", where, found)
        for node in map(members_of, (found, *items_of(found.get("items")))):
            name = str(members_of(node.get("metadata")).get("name", ""))
            conditions = members_of(node.get("status")).get("conditions") if node.get("kind") == "Node" else None
            for each in map(members_of, items_of(conditions)):
                if each.keys() >= {"type", "status"}:
                    yield _entry(name, where, each)


def _entry(node: str, where: Collection[int], found: Document) -> Entry:
    kind = str(found["type"])
    shown = _condition(kind, str(found["status"]), str(found.get("reason")), found.get("message"))
    return Entry(node, tuple(where), kind.lower(), shown)


def _condition(kind: str, status: str, reason: str, message: Json) -> str:
    """Empty for one that is as it should be."""
    good = status == ("True" if _SOUND.fullmatch(kind) else "False")
    return "" if good else f"{kind} is {status} ({reason}): {message or ''}".rstrip(": ")


def _conditions(lines: tuple[str, ...]) -> Iterator[Entry]:
    which = ""
    counts: dict[str, int] = {}
    around: list[int] = []
    events: list[Entry] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if _AROUND.fullmatch(text):
            around.append(number)
        elif pod := _POD.fullmatch(text):
            runs = pod["state"] in ("Running", "Completed")
            yield Entry("", (*around, number), "pods", "" if runs else f"{pod['pod']} is {pod['state']}")
        elif listed := _NODE.fullmatch(text):
            good = listed["state"] == "Ready"
            yield Entry("", (*around, number), "nodes", "" if good else f"node {listed['node']} is {listed['state']}")
        elif resources := _RESOURCES.fullmatch(text):
            which = resources["which"].capitalize()
        elif which and (gpus := _COUNT.fullmatch(text)):
            counts[which] = int(gpus["count"])
            some, every = counts.get("Allocatable", 0), counts.get("Capacity", 0)
            short = len(counts) > 1 and some < every
            yield Entry("", (*around, number), "allocatable",
                       f"{some} of {every} GPUs are allocatable: {_HELD_BACK}" if short else "")  # fmt: skip
            if len(counts) > 1:  # what follows is of another node, or what pods ask for
                counts, which = {}, ""
        elif condition := _CONDITION.fullmatch(text):
            name = condition["type"]
            shown = _condition(name, condition["status"], condition["reason"], condition["message"])
            yield Entry("", (*around, number), name.lower(), shown)
        elif event := _EVENT.fullmatch(text):
            message = f"{event['reason']}: {event['message']}"
            events.append(Entry(event["node"] or "", (*around, number), event["reason"].lower(), message))
        elif entry := logged(_KUBELET, number, text) or logged(_CODE, number, text):
            yield entry
    yield from sorted(events, key=lambda event: not event.node)  # those of nodes first


def read_health_events(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """NVSentinel's that are not healthy any more, and those of gpud that are more than information."""
    lines = bounded(lines)
    return (
        *of_nodes("NVSentinel", _of_nvsentinel(lines)),
        *of_nodes("gpud", _of_gpud(lines)),
        *of_nodes("health monitor", _of_lines(lines)),
    )


def _of_nvsentinel(lines: tuple[str, ...]) -> Iterator[Entry]:
    last: dict[tuple[str, str, str], Entry] = {}
    found = ((each, where) for whole, where in documents(lines, lambda found: any(_events(found)))
             for each in _events(whole))  # fmt: skip
    for event, where in found:
        node, check = str(event.get("nodeName", "")), str(event["checkName"])
        impacted = [*map(members_of, items_of(event.get("entitiesImpacted")))]
        gpus = [str(each.get("entityValue")) for each in impacted if each.get("entityType") == "GPU"]
        known = map(str, items_of(event.get("errorCode")))
        words = [str(event["message"])] if event.get("message") else []
        words += [f"XID {code}" if code.isdecimal() else code for code in known]
        places = (str(each.get("entityValue")) for each in impacted if each.get("entityType") == "PCI")
        at = next((as_bdf(f"{place.partition('.')[0]}.0") for place in places), None)
        text = f"{f'GPU {gpus[0]}: ' if gpus and not at else ''}{check}: {', '.join(words)}"
        key = node, check, str(impacted)
        before = last[key].lines if key in last else ()
        last[key] = Entry(node, (*before, *where), check.lower(),
                         "" if event.get("isHealthy") is True else text, gpu=at or "",
                         fatal=event.get("isFatal") is True)  # fmt: skip
    yield from last.values()


def _events(found: Json, depth: int = 4) -> Iterator[dict[str, Json]]:
    """The health events in what a monitor logs or sends, which leaves out members that are false or empty."""
    if isinstance(found, dict) and "checkName" in found and _states(found):
        yield found
    elif depth:
        for member in (*members_of(found).values(), *items_of(found)):
            yield from _events(member, depth - 1)


def _states(event: dict[str, Json]) -> bool:
    """Does it say what is wrong, or that nothing is?"""
    return bool(event.get("message") or items_of(event.get("errorCode"))) or event.get("isHealthy") is True


def _of_gpud(lines: tuple[str, ...]) -> Iterator[Entry]:
    for found, where in documents(lines, lambda found: "component" in found and not found.keys().isdisjoint(_MEMBERS)):
        for event in map(members_of, items_of(found.get("events", found.get("states", [found])))):
            if not _BAD.isdisjoint((str(event.get("type")), str(event.get("health")))):
                text = f"{event.get('name', '')}: {event.get('message') or event.get('reason', '')}".removeprefix(": ")
                yield Entry("", tuple(where), str(found["component"]), text)
        yield Entry("", tuple(where), str(found["component"]), "")


def _of_lines(lines: tuple[str, ...]) -> Iterator[Entry]:
    """Where the driver's own lines are in the same text, these say nothing more."""
    again = any("NVRM: Xid (" in line for line in lines)
    scanned = any("scanning the host" in line or "✔ ibstat ports/rates check" in line for line in lines)
    for number, line in enumerate(lines):
        text = line.strip()
        if scanned and text[:1] in ("✔", "✘", "⌛"):
            yield Entry("", (number,), "scan", text[1:].strip() if text[0] == "✘" else "")
        elif offered := logged(_OFFERED, number, text):
            yield offered
        elif detected := _DETECTED.fullmatch(text):
            gpu = as_bdf(f"{detected['bdf']}.0") if detected["bdf"] else nameless(0)
            yield Entry("", (number,), "xid", "" if again else text, gpu=gpu or "")


def _judged(text: str) -> tuple[Outcome, FaultKind | None]:
    """By the Xid that it names, else by its words; a note where neither tells a fault."""
    if xid := XID_NUMBER.search(text):
        return of_xid(int(xid["number"]))
    fault = fault_of(text)
    return ("note", None) if fault is Fault.TEST_FAILED else ("fail" if fault is Fault.GPU_LOST else "warn", fault)


def _by_node(entries: Iterable[Entry]) -> Iterator[tuple[str, Entry]]:
    """Each entry with its node, of a list with every node of it; one whose list cannot be read names none."""
    left = _MOST_LISTED
    for each in entries:
        names: tuple[str, ...] = (each.node,)
        if "," in each.node or "[" in each.node:
            try:
                names = unfolded(each.node, max(left, 0))
            except BadInput:
                names = ("",)
            left -= max(len(names), len(each.node))  # trying costs, too
        yield from ((name, each) for name in names or ("",))


def of_nodes(tool: str, entries: Iterator[Entry], stays: bool = False) -> tuple[Imported, ...]:
    """One output for each node; of conditions that are as they should be one result without a fault.

    ``stays``: what a person wrote stands after the repair too, and only warns.
    """
    by_node: dict[str, ToolPart] = {}
    for node, each in _by_node(entries):
        part = by_node.setdefault(node, ToolPart(tool))
        part.lines.update(each.lines)
        if not each.text:
            part.add(HOST, "conditions", "pass")
            continue
        named, at = _GPU.search(each.text), _AT.search(each.text)
        place = as_bdf(f"{at['bdf']}.0") if at else None
        subject = each.gpu or (f"GPU{int(named['gpu'])}" if named else place or HOST)
        outcome, fault = _judged(each.text)
        outcome = "fail" if each.fatal and fault else "warn" if stays and outcome == "fail" else outcome
        part.add(subject, each.topic, outcome, fault, each.text)
    return tuple(
        replace(found, host=node.partition(".")[0]) for node, part in by_node.items() for found in part.imported()
    )
