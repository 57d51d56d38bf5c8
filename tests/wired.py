"""What a shipped box has, and how it is wired: read from its recording alone, apart from the program's own topology."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sample import BY_NAME

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import GroupedFacts, find
from dgxcheck.source.recording.load import load, recording

End = tuple[str, int]
"""One end of an NVLink: the GPU's bus id, and the position."""
PCI, IB, NET = "/sys/bus/pci/devices", "/sys/class/infiniband", "/sys/class/net"


def bdf_of(info: Json) -> str | None:
    """Of an ``nvmlPciInfo_t``."""
    return str(info["busId"])[4:].lower() if isinstance(info, dict) and "busId" in info else None


class Wired:
    """A box; GPUs, adapters and bridges by their bus ids."""

    def __init__(self, name: str) -> None:
        self.lines: GroupedFacts = recording(load(BY_NAME[name]), BY_NAME[name]).lines
        self._paths: dict[str, list[str]] = {}
        handles = self.lines["nvml nvmlDeviceGetHandleByIndex"]
        self.gpus = [str(handles[index]) for index in sorted(handles, key=int)]
        self.hcas = {self._device(f"{IB}/{hca}"): hca for hca in self._names(IB)}
        self.nets = {self._device(f"{NET}/{net}"): net for net in self._names(NET)}
        self.ends = dict(self._ends())
        """The GPU at the other end of each NVLink, NVSwitches apart."""

    def path(self, bdf: str) -> list[str]:
        """Root bus, bridges, the device."""
        if bdf not in self._paths:
            self._paths[bdf] = str(find(self.lines, f"link {PCI}/{bdf}")).partition("/devices/")[2].split("/")
        return self._paths[bdf]

    def behind(self, bridge: str) -> list[str]:
        """GPUs, then adapters, below a bridge."""
        return [bdf for bdf in (*self.gpus, *self.hcas) if bridge in self.path(bdf)]

    def switches(self) -> list[str]:
        """The upstream ports of switches with GPUs right below them."""
        return list(dict.fromkeys(self.path(gpu)[-3] for gpu in self.gpus))

    def names(self, bdf: str) -> list[str]:
        """What a GPU or adapter is called in keys and texts."""
        if bdf in self.hcas:
            hca = self.hcas[bdf]
            return [bdf, bdf[:-2], hca, self.nets[bdf], f"uverbs{hca.removeprefix('mlx5_')}"]
        uuid = find(self.lines, f"nvml nvmlDeviceGetUUID {bdf}")
        return [bdf, bdf[:-2], str(uuid), f"/dev/nvidia{self.gpus.index(bdf)}"]

    def called(self, bdf: str) -> str:
        """Its name in what is printed."""
        return self.hcas.get(bdf) or f"GPU{self.gpus.index(bdf)}"

    def links(self, a: str, b: str) -> list[End]:
        """Ends at GPU ``a`` of the NVLinks to ``b``."""
        return sorted(end for end, far in self.ends.items() if (end[0], far) == (a, b))

    def joined(self) -> list[tuple[str, str]]:
        """Pairs of GPUs with NVLinks between them."""
        return [(a, b) for at, a in enumerate(self.gpus) for b in self.gpus[at:] if self.links(a, b)]

    def _device(self, folder: str) -> str:
        return str(find(self.lines, f"link {folder}/device")).rpartition("/")[2]

    def _names(self, folder: str) -> list[str]:
        names = self.lines.get(folder, {}).get("names")
        return [str(name) for name in names] if isinstance(names, list) else []

    def _ends(self) -> Iterator[tuple[End, str]]:
        for gpu in self.gpus:
            for position, info in self.lines.get(f"nvml nvmlDeviceGetNvLinkRemotePciInfo {gpu}", {}).items():
                if (far := bdf_of(info)) in self.gpus and far is not None:
                    yield (gpu, int(position)), far


wired = cache(Wired)
