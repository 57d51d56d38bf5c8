"""The facts of a bundle's sections: each output goes to the reader of its tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.limits import FILE_BYTES
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.bundles.bug_report import HEAD
from dgxcheck.readers.bundles.kernel_logs import kernel_log
from dgxcheck.readers.bundles.section import Section
from dgxcheck.readers.bundles.wanted import KERNEL_LOG, options_of, reader_of, without_dots
from dgxcheck.readers.dcgm import diag, diag_json, discovery, health, nvlink, topo
from dgxcheck.readers.host import dmidecode, fabric_manager, lscpu, modules, numactl, uname
from dgxcheck.readers.kernel_log.domain import DOMAIN, default_domain
from dgxcheck.readers.lspci.files import files as pci_files
from dgxcheck.readers.lspci.listing import functions, merged
from dgxcheck.readers.lspci.tree import tree
from dgxcheck.readers.model import Imported, Reader
from dgxcheck.readers.network import ibdev2netdev, ibstat, ibstatus, ibv_devinfo, mlxlink, mst, rdma_link
from dgxcheck.readers.nvidia_smi import catalogue


def _dcgmi(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    return tuple(part for reader in (diag, diag_json, health, nvlink, discovery, topo) for part in reader.read(lines))


_HOST: Mapping[str, Reader] = {
    "dmidecode": dmidecode.read,
    "numactl": numactl.read,
    "ibstat": ibstat.read,
    "lsmod": modules.read,
    "mst": mst.read,
    "ibstatus": ibstatus.read,
    "ibv_devinfo": ibv_devinfo.read,
    "rdma": rdma_link.read,
    "ibdev2netdev": ibdev2netdev.read,
    "mlxlink": mlxlink.read,
    "lscpu": lscpu.read,
    "dcgmi": _dcgmi,
    "fabricmanager": fabric_manager.read,
}
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


def outputs(sections: Sequence[Section]) -> list[Output]:
    """Everything that is read, in the order in which facts take precedence: files of the machine before tools."""
    by_reader: dict[str, list[Section]] = {}
    for section in sections:
        if (section.lines or section.absent or section.title.endswith(_STATUS)) and (name := reader_of(section.title)):
            by_reader.setdefault(name, []).append(section)
    found = [_output("files", by_reader.get("files", []), _files(by_reader.get("files", [])))]
    for name, read in _HOST.items():
        for section in by_reader.get(name, []):
            found += [_of(section, part) for part in read(section.lines)]
    for section in by_reader.get("uname", []):
        found.append(_output("uname", [section], uname.read(section.lines[0])))
    for section in sections:
        if section.title.startswith(HEAD):
            facts = next((facts for line in section.lines if (facts := uname.read(line))), {})
            found.append(_output("uname", [section], facts))
    found.append(_lspci(by_reader.get("lspci", [])))
    log = kernel_log(by_reader.get(KERNEL_LOG, []))
    domain = default_domain(line for section in by_reader.get(KERNEL_LOG, []) for line in section.lines)
    if domain:
        found.append(_output("iommu", by_reader[KERNEL_LOG][:1], {DOMAIN: domain}))
    lines: dict[str, Json] = {f"kmsg {number}": line for number, line in enumerate(log)}
    found.append(_output(KERNEL_LOG, by_reader.get(KERNEL_LOG, []), lines))
    for section in by_reader.get("nvidia-smi", []):
        if not section.lines:  # nvidia-smi lists the GPUs that have NVLinks, and leaves without a word where none has
            found.append(_output("nvidia-smi nvlink -s", [section], {NO_NVLINKS: True}))
        found += [_of(section, part) for reader in catalogue.READERS for part in reader(section.lines)]
    return [output for output in found if output.found.facts]


def _output(tool: str, sections: Sequence[Section], facts: dict[str, Json]) -> Output:
    lines = sum(len(section.lines) for section in sections)
    first = sections[0].first if sections else 0
    title = sections[0].title.strip() if sections else ""
    return Output(title=title, first=first, lines=lines,
                  found=Imported(tool=tool, facts=facts, understood=frozenset()))  # fmt: skip


def _of(section: Section, part: Imported) -> Output:
    return Output(title=section.title, first=section.first, lines=len(part.understood), found=part)


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
        options = options_of(section.title)
        if any(word.startswith("-") and "t" in word and "=" not in word for word in options.split()):
            trees.append(tree(section.lines)[0])
        else:
            listings.append(functions(section.lines)[0])
            whole = whole or not any(word[:2] in ("-d", "-s") for word in options.split())
    shown = merged(listings)
    drawn = next((each for each in trees if each.bridges or each.roots), None)
    facts = pci_files(shown, drawn, whole) if shown else {}
    return _output("lspci", sections, facts)
