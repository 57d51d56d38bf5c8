"""A machine made of the files that a test names; everything else is absent."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.source.protocol import Json, Origin, Source

PCI = "/sys/bus/pci/devices"


class FakeSource:
    """Files, links and device nodes by path; a directory's names are those of the paths below it."""

    origin = Origin("directory", "fake")
    at_s = 0.0

    def __init__(
        self,
        files: Mapping[str, str | bytes | Missing],
        links: Mapping[str, str | Missing] | None = None,
        listings: Mapping[str, tuple[str, ...] | Missing] | None = None,
        nodes: Mapping[str, bool | Missing] | None = None,
    ) -> None:
        self._files = files
        self._links = links or {}
        self._listings = listings or {}
        self._nodes = nodes or {}
        self.asked: list[str] = []

    def text(self, path: str) -> str | Missing:
        answer = self._file(path)
        return answer.decode(errors="replace") if isinstance(answer, bytes) else answer

    def data(self, path: str) -> bytes | Missing:
        answer = self._file(path)
        return answer.encode() if isinstance(answer, str) else answer

    def link(self, path: str) -> str | Missing:
        self.asked.append(f"link {path}")
        return self._links.get(path, Missing(Gap.ABSENT, path))

    def names(self, path: str) -> tuple[str, ...] | Missing:
        self.asked.append(f"names {path}")
        if path in self._listings:
            return self._listings[path]
        below = path.rstrip("/") + "/"
        found = {key[len(below) :].partition("/")[0] for key in self._paths() if key.startswith(below)}
        return tuple(sorted(found)) or Missing(Gap.ABSENT, path)

    def opens(self, path: str) -> bool | Missing:
        self.asked.append(f"opens {path}")
        return self._nodes.get(path, Missing(Gap.ABSENT, path))

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        return Missing(Gap.UNRECORDED, function)

    def name(self, table: str, key: str) -> str | Missing:
        return Missing(Gap.ABSENT, key)

    def kernel_log(self) -> tuple[str, ...] | Missing:
        return Missing(Gap.ABSENT, "/dev/kmsg")

    def measured(self) -> Missing:
        return Missing(Gap.UNRECORDED, "measure")

    def stated(self) -> Missing:
        return Missing(Gap.UNRECORDED, "stated")

    def later(self, seconds: float) -> Source | Missing:
        return Missing(Gap.UNRECORDED, "later")

    def _paths(self) -> tuple[str, ...]:
        return (*self._files, *self._links, *self._nodes)

    def _file(self, path: str) -> str | bytes | Missing:
        self.asked.append(f"file {path}")
        return self._files.get(path, Missing(Gap.ABSENT, path))


def function(bdf: str, **files: str | bytes | Missing) -> dict[str, str | bytes | Missing]:
    """Files of one PCI function; ``class_`` is ``class``."""
    return {f"{PCI}/{bdf}/{name.rstrip('_')}": answer for name, answer in files.items()}


def dgx_corner() -> FakeSource:
    """A root port, a switch, a V100 and a ConnectX-4 below it, and a chipset function of no interest."""
    files: dict[str, str | bytes | Missing] = {}
    for bdf, code in (
        ("0000:00:02.0", "0x060400"),
        ("0000:03:00.0", "0x060400"),
        ("0000:04:04.0", "0x060400"),
        ("0000:04:08.0", "0x060400"),
        ("0000:05:00.0", "0x020700"),
        ("0000:06:00.0", "0x030200"),
        ("0000:00:1f.0", "0x060100"),
    ):
        files |= function(
            bdf,
            class_=f"{code}\n",
            vendor="0x10de\n" if bdf == "0000:06:00.0" else "0x15b3\n",
            device="0x1db1\n",
            current_link_speed="8 GT/s\n",
            current_link_width="16\n",
            max_link_speed="8.0 GT/s PCIe\n",
            max_link_width="16\n",
            numa_node="0\n",
            local_cpulist="0-19,40-59\n",
        )
    above = "../../../devices/pci0000:00/0000:00:02.0/0000:03:00.0"
    links: dict[str, str | Missing] = {
        f"{PCI}/0000:05:00.0": f"{above}/0000:04:04.0/0000:05:00.0",
        f"{PCI}/0000:06:00.0": f"{above}/0000:04:08.0/0000:06:00.0",
        f"{PCI}/0000:00:1f.0": "../../../devices/pci0000:00/0000:00:1f.0",
        f"{PCI}/0000:06:00.0/driver": "../../../../bus/pci/drivers/nvidia",
        "/sys/class/infiniband/mlx5_0/device": "../../../0000:05:00.0",
    }
    return FakeSource(files, links)
