"""The outputs of a bundle as facts of one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dgxcheck.facts.ids import NVLINK_MAX_LINKS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.facts.typical import gathered
from dgxcheck.input_file import CpuTime
from dgxcheck.limits import FILE_BYTES
from dgxcheck.readers import any_text
from dgxcheck.readers.bundles.bug_report import HEAD
from dgxcheck.readers.bundles.kernel_logs import kernel_log
from dgxcheck.readers.bundles.sections import KERNEL_LOG, Section, reader_of, without_dots
from dgxcheck.readers.combine import Part, combine
from dgxcheck.readers.dcgm import devices, diag, health
from dgxcheck.readers.derived import completed
from dgxcheck.readers.host import dmidecode, services, system
from dgxcheck.readers.kernel_log import excerpt
from dgxcheck.readers.kernel_log.excerpt import DOMAIN, default_domain
from dgxcheck.readers.layout.undo import Layout, undone
from dgxcheck.readers.listing import OF_LIST, printed_bdfs, with_numbers, without_unplaced
from dgxcheck.readers.lspci import text as lspci
from dgxcheck.readers.lspci.files import files as pci_files
from dgxcheck.readers.lspci.listing import functions, merged, tree
from dgxcheck.readers.model import Imported, Reader
from dgxcheck.readers.network import adapters, counters, hcas
from dgxcheck.readers.nvidia_smi import catalogue
from dgxcheck.readers.onto import mismatch, nvml_gpus, rebase_indexes

_TOOLS = {"lspci": (lspci.TOOL, lspci.TREE), KERNEL_LOG: (excerpt.TOOL,)}
"""By reader: what its parts of a text are called. Several of them are put together before they are read."""


class Loose(Record):
    """A file, and what was recognised in it."""

    section: Section
    layout: Layout
    found: tuple[tuple[str, Imported], ...]
    """Host and output."""

    @property
    def unread(self) -> tuple[int, ...]:
        """Numbers from 0 of the lines that no reader understood."""
        return any_text.unread(self.section.lines, self.layout, [part for _, part in self.found])

    def holds(self, reader: str) -> bool:
        """Output of this reader, and of one host."""
        return len({part.host or host for host, part in self.found if part.tool in _TOOLS[reader]}) == 1

    def sections(self, reader: str) -> list[Section]:
        """The output of this reader as if it had a file of its own."""
        if reader == KERNEL_LOG:
            title = self.section.title if reader_of(self.section.title) == KERNEL_LOG else "log"
            return [self._section(title, tuple(row for _, row in excerpt.rows_of(self.layout.lines)))]
        whole = any(f"names {PCI_DEVICES}" in part.facts for _, part in self.found if part.tool in _TOOLS[reader])
        listing = [self._section(lspci.TOOL if whole else "lspci -s", self.layout.lines)]
        return listing + [self._section(lspci.TREE, self.layout.lines)] * bool(tree(self.layout.lines)[0].roots)

    def without(self, reader: str) -> Loose:
        """The same file without what this reader found."""
        left = ((host, part) for host, part in self.found if part.tool not in _TOOLS[reader])
        return replace(self, found=tuple(left))

    def _section(self, title: str, lines: tuple[str, ...]) -> Section:
        return Section(title=title, lines=lines, size=len(lines), file=self.section.file, host=self.section.host)


def read_loose(section: Section, time: CpuTime) -> Loose:
    """What every reader finds in a file."""
    layout = time.whole(section.file, partial(undone, section.lines))
    return Loose(section=section, layout=layout, found=tuple(any_text.outputs(layout, time)))


_HOST: Mapping[str, Sequence[Reader]] = {
    "dmidecode": (dmidecode.read_dmidecode,),
    "numactl": (system.read_numactl,),
    "ibstat": (hcas.read_ibstat,),
    "lsmod": (system.read_modules,),
    "mst": (adapters.read_mst,),
    "ibstatus": (hcas.read_ibstatus,),
    "ibv_devinfo": (hcas.read_ibv_devinfo,),
    "rdma": (counters.read_link,),
    "ibdev2netdev": (hcas.read_ibdev2netdev,),
    "mlxlink": (adapters.read_mlxlink,),
    "lscpu": (system.read_lscpu,),
    "dcgmi": (
        diag.read_diag, diag.read_json, health.read_health, devices.read_nvlink, devices.read_discovery,
        devices.read_topo,
    ),
    "fabricmanager": (services.read_fabric_manager,),
}  # fmt: skip
NO_NVLINKS = "stated nvlink-none"
"""Key of the fact that no GPU of the machine has an NVLink."""
_STATUS = ("nvidia-smi nvlink --status", "nvidia-smi nvlink -s")
_ABSENT: Json = {"missing": "absent"}


class Output(Record):
    """What was read of some sections by one reader."""

    title: str
    """The first section's."""
    first: int
    """Number of its first line, from 0."""
    lines: int
    found: Imported
    host: str = ""
    """The host that the text names; empty if it names none."""


class Found(Record):
    """What was read of a bundle."""

    outputs: tuple[Output, ...]
    unread: Mapping[str, tuple[int, ...]]
    """By file: numbers from 0 of the lines that no reader understood, of files that hold something else too."""
    nothing: tuple[str, ...]
    """Files in which no reader found anything, though each looked at them."""
    texts: Mapping[str, tuple[str, ...]]
    """The lines of the files with unread ones."""


def outputs(sections: Sequence[Section], time: CpuTime) -> Found:
    """Everything that is read, in the order in which facts take precedence: files of the machine before tools."""
    shown = (section for section in sections
             if not section.loose and (section.lines or section.absent or section.title.endswith(_STATUS)))  # fmt: skip
    by_reader = gathered((name, section) for section in shown if (name := reader_of(section.title)))
    looked = [read_loose(section, time) for section in time.within(sections) if section.loose]
    texts = looked
    for name in ("lspci", KERNEL_LOG):
        own = [text for text in texts if text.holds(name)]
        if own and (name in by_reader or len(own) > 1):
            by_reader.setdefault(name, []).extend(part for text in own for part in text.sections(name))
            texts = [text.without(name) if text in own else text for text in texts]
    found = [*_outputs(by_reader, sections, time), *(output for text in texts for output in _of_text(text))]
    unread = {text.section.file: text.unread for text in looked if text.found and text.unread}
    return Found(
        outputs=tuple(output for output in found if output.found.facts), unread=unread,
        nothing=tuple(text.section.file for text in looked if not text.found),
        texts={text.section.file: text.section.lines for text in looked if text.section.file in unread},
    )  # fmt: skip


def _of_text(text: Loose) -> list[Output]:
    return [
        Output(title=text.section.file, first=min(part.understood, default=0), lines=len(part.understood), found=part,
               host=part.host or host)
        for host, part in text.found
    ]  # fmt: skip


def _outputs(by_reader: Mapping[str, list[Section]], sections: Sequence[Section], time: CpuTime) -> list[Output]:
    found = [_output("files", by_reader.get("files", []), _files(by_reader.get("files", [])))]
    for name, readers in _HOST.items():
        found += _by(readers, by_reader.get(name, []), time)
    heads = (section for section in sections if section.title.startswith(HEAD))
    for section in (*by_reader.get("uname", []), *heads):
        found.append(_output("uname", [section], system.read_uname(section.lines)))
    found += time.of(lambda: [_lspci(by_reader.get("lspci", []))])
    logs = by_reader.get(KERNEL_LOG, [])
    log = time.of(partial(kernel_log, logs))
    if domain := default_domain(line for section in logs for line in section.lines):
        found.append(_output("iommu", logs[:1], {DOMAIN: domain}))
    lines: dict[str, Json] = {f"kmsg {number}": line for number, line in enumerate(log)}
    found.append(_output(KERNEL_LOG, logs, lines))
    for section in by_reader.get("nvidia-smi", []):
        if not section.lines:  # nvidia-smi lists the GPUs that have NVLinks, and leaves without a word where none has
            found.append(_output("nvidia-smi nvlink -s", [section], {NO_NVLINKS: True}))
        found += _by(catalogue.READERS, [section], time)
    return found


def _by(readers: Sequence[Reader], sections: Sequence[Section], time: CpuTime) -> list[Output]:
    return [
        Output(title=section.title, first=section.first, lines=len(part.understood), found=part)
        for section in time.within(sections) for reader in time.within(readers)
        for part in time.of(partial(reader, section.lines))
    ]  # fmt: skip


def _output(tool: str, sections: Sequence[Section], facts: dict[str, Json]) -> Output:
    lines = sum(len(section.lines) for section in sections)
    first = sections[0].first if sections else 0
    title = sections[0].title.strip() if sections else ""
    return Output(title=title, first=first, lines=lines, found=Imported(tool=tool, facts=facts, understood=frozenset()))


def _files(sections: Sequence[Section]) -> dict[str, Json]:
    facts: dict[str, Json] = {}
    for section in sections:
        text = "\n".join(section.lines) + "\n"
        if len(text) <= FILE_BYTES:
            facts.setdefault(f"text {without_dots(section.title)}", _ABSENT if section.absent else text)
    return facts


def _lspci(sections: Sequence[Section]) -> Output:
    """All listings together: an older script shows the bytes of NVIDIA's functions alone, ids and tree of all."""
    listings, trees = [], []
    whole = False
    for section in sections:
        options = section.title.split()[1:]
        if any(word.startswith("-") and "t" in word and "=" not in word for word in options):
            trees.append(tree(section.lines)[0])
        else:
            listings.append(functions(section.lines)[0])
            whole = whole or not any(word[:2] in ("-d", "-s") for word in options)
    shown = merged(listings)
    drawn = next((each for each in trees if each.bridges or each.roots), None)
    return _output("lspci", sections, pci_files(shown, drawn, whole) if shown else {})


_INVALID: Json = {"missing": "unsupported", "detail": "nvidia-smi lists no such link", "code": 2}
_NO_NVLINK: Json = {"missing": "unsupported", "detail": "nvidia-smi lists no NVLink of this GPU"}
_STATE = "nvml nvmlDeviceGetNvLinkState"


def machine_facts(found: Sequence[Output]) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Facts by key, and the titles of outputs that were left out because they contradict an earlier one.

    What names GPUs by their index belongs to those of nvidia-smi's dump.
    """
    combined = combine([Part(output.title, output.found) for output in found], one_box=True)
    facts = combined.facts
    facts = without_unplaced(facts) if f"names {PCI_DEVICES}" in facts else with_numbers(facts)
    gpus = dict(enumerate(nvml_gpus(facts))) or printed_bdfs(facts)
    if gpus and not mismatch(facts, gpus):
        own = {key: fact for key, fact in facts.items() if key.startswith(("nvml ", *OF_LIST))}
        facts = rebase_indexes(facts, gpus) | own
        facts |= _ends_of_links(facts, nvml_gpus(facts))
    refused = tuple(part.file for part in combined.refused)
    return {key: fact for key, fact in completed(facts).items() if not key.startswith(NO_NVLINKS)}, refused


def _ends_of_links(facts: Mapping[str, Json], gpus: Sequence[str]) -> dict[str, Json]:
    """``nvlink --status`` lists all links of the GPUs that have any: the number after the last one is no link."""
    ends: dict[str, Json] = {}
    if NO_NVLINKS in facts:
        return {f"{_STATE} {bdf} 0": _NO_NVLINK for bdf in gpus}
    status = any(key.startswith(f"{_STATE} ") for key in facts)
    for bdf in gpus:
        listed = [link for link in range(NVLINK_MAX_LINKS) if f"{_STATE} {bdf} {link}" in facts]
        answers = isinstance(facts.get(f"nvml nvmlDeviceGetName {bdf}", ""), str)  # else its links are not known
        if not listed and status and answers:
            ends[f"{_STATE} {bdf} 0"] = _NO_NVLINK
        if listed and listed[-1] == len(listed) - 1:
            ends[f"{_STATE} {bdf} {len(listed)}"] = _INVALID
    return ends
