"""PCI functions by name, class and path, before anything else is asked of them."""

from __future__ import annotations

from dgxcheck.facts.bdf import is_bdf, is_root_bus
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.sysfs import INFINIBAND, PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.parse_scalar import garbled, hexadecimal

Path = tuple[str, ...]

_PATH_MAX = 4096


def class_codes(source: Source) -> dict[str, int | Missing] | Missing:
    """``class`` of every PCI function, in the order of the names."""
    names = source.names(PCI_DEVICES)
    if isinstance(names, Missing):
        return names
    return {name: ask(source, f"{PCI_DEVICES}/{name}/class", hexadecimal) for name in names if is_bdf(name)}


def path_of(source: Source, bdf: str) -> Path | Missing:
    """Root bus, bridges and the function itself, from the link ``/sys/bus/pci/devices/<bdf>``."""
    where = f"{PCI_DEVICES}/{bdf}"
    target = source.link(where)
    return target if isinstance(target, Missing) else path(target, bdf, where)


def path(target: str, bdf: str, where: str) -> Path | Missing:
    """The part of a link's text from the last root bus on: VMD and Hyper-V put other devices above one."""
    parts = target.rstrip("/").split("/") if len(target) < _PATH_MAX else []
    for at in range(len(parts) - 1, -1, -1):
        if is_root_bus(parts[at]):
            below = parts[at + 1 :]
            if below and below[-1] == bdf and all(map(is_bdf, below)):
                return tuple(parts[at:])
            break
    return garbled(target, where)


def with_bridges(paths: dict[str, Path | Missing]) -> dict[str, Path | Missing]:
    """The given functions' paths and those of every bridge above them."""
    every = dict(paths)
    for own in paths.values():
        if not isinstance(own, Missing):
            for depth in range(2, len(own)):
                if own[depth - 1] not in every:
                    every[own[depth - 1]] = own[:depth]
    return every


def function_behind(source: Source, where: str) -> str | Missing:
    """The PCI function that a class device's ``device`` link leads to.

    Where that link says ``../..`` alone, as it does in trees made from paths, the entry's own link in the class
    directory names the function.
    """
    target = source.link(where)
    if isinstance(target, Missing):
        return target
    if is_bdf(name := target.rstrip("/").rpartition("/")[2]):
        return name
    own = source.link(where.rpartition("/")[0])
    names = [] if isinstance(own, Missing) else [part for part in own.split("/") if is_bdf(part)]
    return names[-1] if names else Missing(Gap.ABSENT, where, f"not a PCI function: {target[:80]}")


def behind_infiniband(source: Source) -> set[str]:
    """The functions behind ``/sys/class/infiniband``, whatever their class: QLogic's has that of a serial bus."""
    names = source.names(INFINIBAND)
    if isinstance(names, Missing):
        return set()
    found = (function_behind(source, f"{INFINIBAND}/{name}/device") for name in names)
    return {bdf for bdf in found if not isinstance(bdf, Missing)}
