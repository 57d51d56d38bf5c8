"""The facts of a bundle's sections: each output goes to the reader of its tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.limits import FILE_BYTES
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.bundles.bug_report import HEAD
from dgxcheck.readers.bundles.kernel_logs import kernel_log
from dgxcheck.readers.bundles.loose import Loose
from dgxcheck.readers.bundles.loose import read as read_loose
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


def outputs(sections: Sequence[Section]) -> Found:
    """Everything that is read, in the order in which facts take precedence: files of the machine before tools."""
    by_reader: dict[str, list[Section]] = {}
    for section in sections:
        if section.loose:
            continue
        if (section.lines or section.absent or section.title.endswith(_STATUS)) and (name := reader_of(section.title)):
            by_reader.setdefault(name, []).append(section)
    looked = [read_loose(section) for section in sections if section.loose]
    texts = looked
    for name in ("lspci", KERNEL_LOG):
        own = [text for text in texts if text.holds(name)]
        if own and (name in by_reader or len(own) > 1):
            by_reader.setdefault(name, []).extend(part for text in own for part in text.sections(name))
            texts = [text.without(name) if text in own else text for text in texts]
    found = [*_outputs(by_reader, sections), *(output for text in texts for output in _of_text(text))]
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


def _outputs(by_reader: Mapping[str, list[Section]], sections: Sequence[Section]) -> list[Output]:
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
    logs = by_reader.get(KERNEL_LOG, [])
    log = kernel_log(logs)
    domain = default_domain(line for section in logs for line in section.lines)
    if domain:
        found.append(_output("iommu", logs[:1], {DOMAIN: domain}))
    lines: dict[str, Json] = {f"kmsg {number}": line for number, line in enumerate(log)}
    found.append(_output(KERNEL_LOG, logs, lines))
    for section in by_reader.get("nvidia-smi", []):
        if not section.lines:  # nvidia-smi lists the GPUs that have NVLinks, and leaves without a word where none has
            found.append(_output("nvidia-smi nvlink -s", [section], {NO_NVLINKS: True}))
        found += [_of(section, part) for reader in catalogue.READERS for part in reader(section.lines)]
    return found


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
