"""Names of the PCI ids that the functions of interest have."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.pci import functions as pci


def probe(source: Source) -> Mapping[str, str | Missing] | Missing:
    """pci.ids by ``vendor:device``, four hexadecimal digits each."""
    functions = pci.probe(source)
    if isinstance(functions, Missing):
        return functions
    ids = {
        f"{function.vendor:04x}:{function.device:04x}"
        for function in functions
        if isinstance(function.vendor, int) and isinstance(function.device, int)
    }
    return {key: source.name("pci", key) for key in sorted(ids)}
