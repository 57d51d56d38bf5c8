"""The table that ``nvidia-smi`` without options prints, of every driver: two or three rows for each GPU.

Cells are what stands between bars, however wide: R545 made the columns wider, R450 added MIG. A cell without its right
bar is cut. Long names are cut by nvidia-smi itself (``Tesla V100-SXM2...``): such a name is left out, unless the size
of the memory makes it whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.ids import MOST_GPUS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.facts.tool_outputs import ON_WINDOWS
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, Reports
from dgxcheck.readers.nvidia_smi.answers import ERRORS, MIG_DEVICES, NO_ANSWER, NOWHERE, GpuDump, imported
from dgxcheck.readers.nvidia_smi.topo import plain
from dgxcheck.readers.values import bounded, gpu

TABLE_TOOL = "nvidia-smi"
ERR = "ERR!"
"""A value that NVML did not give."""
LONGEST = 240
"""Characters of a line; the widest tables have 115."""
_TABLE_HEAD = LazyPattern(r"\| *NVIDIA-SMI \S.*")
_VERSION = LazyPattern(r"(?:Driver|KMD) Version: {0,9}(\d[\d.]{2,20})(?=[\s|])")
_CUDA = LazyPattern(r"CUDA (?:UMD )?Version: {0,9}(\d[\d.]{1,8})(?=[\s|])")
_GPU = LazyPattern(
    r"(?P<index>\d{1,3}) +(?P<name>\S.{0,64}?) +(?P<mode>On|Off|N/A|ERR!|Enabled|Disabled|WDDM|TCC|MCDM)"
)
_DRIVER_MODELS = ("WDDM", "TCC", "MCDM")
"""What the table of Windows has in place of the persistence mode."""
_ON_WINDOWS = "this is Windows, and commands of the steps are those of Linux"
_CUT = "product name, cut"
_NAMED_BY_SIZE = (
    "Tesla P100-SXM2", "Tesla P100-PCIE", "Tesla V100-SXM2", "Tesla V100-PCIE", "Tesla V100-DGXS",
    "NVIDIA A100-SXM4", "NVIDIA A100-PCIE",
)  # fmt: skip
"""Models whose names end in the size of their memory (g_nv_name_released.h of NVIDIA/open-gpu-kernel-modules); not the
V100-SXM3, of which there are two of one size."""
_GEFORCE = LazyPattern(r"(?:NVIDIA )?GeForce ")
"""What a name that is cut still says."""
_PLACE = LazyPattern(r"(?P<bdf>[0-9A-Fa-f:.]{7,16}|\S{1,24}) +(?P<display>On|Off|N/A|ERR!|Enabled|Disabled)")
_FAN = LazyPattern(
    r"(?P<fan>\S+%?) +(?P<temp>\S+) +(?P<pstate>P\d{1,2}|\S+) +(?P<power>\S[^/]{0,24}|N/A) ?/ +(?P<cap>\S.{0,24})"
)
_MEMORY = LazyPattern(r"(?P<used>\d+ ?MiB|\S{1,16}) ?/ *(?P<total>\d+ ?MiB|\S{1,16})")
_MODE = LazyPattern(r"(?P<busy>\d+%|N/A|ERR!|Unknown Error|\S{1,16}) +(?P<mode>\S.{0,32})")
_MIG = LazyPattern(r"(?:N/A|(?:Enabled|Disabled)\*?|ERR!)?")
_TITLES = LazyPattern(r"\| *(?:GPU +Name|Fan +Temp|GPU +GI|ID +ID|GPU +CI).*|\|[\s|]{0,200}MIG M\. *\|")
_FRAME = LazyPattern(r"[+|][-=+|]{3,}[+|]?")
_PART = LazyPattern(r"\| *(?:Processes|MIG devices|vGPU):?[ |].*")
_ECC = "ecc errors/volatile/double bit/total"
_INSTANCE = LazyPattern(
    r"\| {0,4}(?P<index>\d{1,3})(?: {1,4}\d{1,3}){3} {1,4}\|[^|]{3,40}\| {0,4}\d{1,4} {1,12}(?P<ecc>\d{1,18}|N/A) "
    r"{0,4}\|.*"
)
"""A MIG device and its uncorrected errors; the row of its GPU only says that ECC is on."""
_NO_INSTANCE = LazyPattern(r"\| +No MIG devices found +\|")
_CLOCK = LazyPattern(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \d{4}")
COMMAND = LazyPattern(r"(?:^|[\s/])nvidia-smi$")


def read_table(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All tables of a text; a head or an index that comes again begins another."""
    reader = _Reader()
    for at, line in enumerate(bounded(lines)):
        reader.take(at, plain(line[:LONGEST]).strip())
    reader.end()
    return tuple(reader.tables)


class _Reader:
    """Line by line: the table that is open, and the GPU whose second or third row comes next."""

    def __init__(self) -> None:
        self.tables: list[Imported] = []
        self._gpus: list[GpuDump] = []
        self._system: dict[str, str] = {}
        self._understood: set[int] = set()
        self._above: set[int] = set()
        """Lines that may belong to the table that follows: frame, titles, date, command."""
        self._row = 0
        self._below = False
        """Within the list of MIG devices or of processes."""
        self._in_mig: set[int] = set()
        """GPUs that have MIG devices; MOST_GPUS where their list ends."""

    def take(self, number: int, text: str) -> None:
        """One line."""
        cells = text[1:].split("|") if text.startswith("|") else []
        cut = bool(cells) and not text.endswith("|")
        if _TABLE_HEAD.fullmatch(text):
            self.end()
            driver, cuda = _VERSION.search(text), _CUDA.search(text)
            self._system = {"driver version": driver[1] if driver else "", "cuda version": cuda[1] if cuda else ""}
            self._understood = {number, *self._above}
        elif _FRAME.fullmatch(text) or _TITLES.fullmatch(text):
            self._keep(number)
        elif _PART.fullmatch(text):
            self._below = True
            self._in_mig |= {MOST_GPUS} if self._in_mig else set()
            self._keep(number)
        elif self._below and cells:
            self._keep(number)
            if instance := _INSTANCE.fullmatch(text):
                self._in_mig.add(int(instance["index"]))
                if instance["ecc"].strip("0N/A"):
                    _count_errors(self._gpus, int(instance["index"]), int(instance["ecc"]))
            elif _NO_INSTANCE.fullmatch(text):
                self._in_mig.add(MOST_GPUS)
        elif cells and (section := _first(cells, cut)) is not None:
            if section.index in [each.index for each in self._gpus]:
                system = self._system
                self.end()
                self._system = system
            self._gpus.append(section)
            self._row = 1
            self._understood |= {number, *self._above}
        elif cells and self._gpus and self._row and (fields := _next(cells, self._row)) is not None:
            last = self._gpus[-1].fields
            # state, temperature, power and memory alike: the driver answers nothing but the name, which it keeps
            dead = len(fields) > 6 and {*fields.values()} == {ERR}
            dead |= last.get("product name") == ERR or NO_ANSWER in last.values()
            last |= {path: NO_ANSWER if dead and value == ERR else value for path, value in fields.items()}
            last |= _named(last.pop(_CUT, ""), last.get("fb memory usage/total", "").removesuffix("MiB").strip())
            self._row += 1
            self._understood.add(number)
        elif _CLOCK.fullmatch(text) or COMMAND.search(text):
            self._above.add(number)
        elif text:
            self._below = False

    def end(self) -> None:
        """The table is over."""
        if self._gpus or self._system.get("driver version"):
            for dump in self._gpus:  # the list is in their order
                if dump.index not in self._in_mig and (dump.index or 0) < max(self._in_mig, default=0):
                    dump.fields[MIG_DEVICES] = "None"
            self.tables.append(imported(TABLE_TOOL, self._gpus, self._system, frozenset(self._understood)))
            if any("persistence mode" not in each.fields for each in self._gpus):
                self.tables[-1] = replace(self.tables[-1], facts={**self.tables[-1].facts, **_windows()})
            self._above = set()
        self._gpus, self._system, self._understood, self._in_mig = [], {}, set(), set()
        self._below = False

    def _keep(self, number: int) -> None:
        (self._understood if self._gpus or self._system else self._above).add(number)


def _windows() -> dict[str, Json]:
    reports = Reports(TABLE_TOOL)
    reports.add(HOST, ON_WINDOWS.removeprefix(f"{TABLE_TOOL}-"), "note", None, _ON_WINDOWS)
    return reports.facts()


def _count_errors(gpus: Sequence[GpuDump], index: int, errors: int) -> None:
    """The most that one MIG device of a GPU shows: it has at least so many."""
    for dump in gpus:
        if dump.index == index:
            known = dump.fields.get(_ECC, "")
            dump.fields[_ECC] = str(max(errors, int(known) if known.isdecimal() else 0))


def _first(cells: Sequence[str], cut: bool) -> GpuDump | None:
    """Number, name, bus id and ECC: the first row of a GPU."""
    gpu_cell = _GPU.fullmatch(cells[0].strip()) if len(cells) > 1 else None
    place = _PLACE.fullmatch(cells[1].strip()) if len(cells) > 2 or (len(cells) == 2 and not cut) else None
    if gpu_cell is None or place is None or (number := gpu(gpu_cell["index"])) is None:
        return None
    fields = {"display active": place["display"]}
    if gpu_cell["mode"] not in _DRIVER_MODELS:
        fields["persistence mode"] = gpu_cell["mode"]
    if not gpu_cell["name"].endswith(("...", "..")) and gpu_cell["name"] != "N/A":
        fields["product name"] = gpu_cell["name"]
    else:
        fields[_CUT] = gpu_cell["name"].rstrip(".")
    if _GEFORCE.match(fields.get(_CUT, "")):
        fields["product brand"] = "GeForce"
    whole = len(cells) > 3 or (len(cells) == 3 and not cut)
    ecc = cells[2].strip() if whole else ""
    if ecc.isdecimal() or ecc in ERRORS or ecc in ("N/A", ERR, "Unknown Error"):
        fields[_ECC] = ecc
    elif ecc == "Off":
        fields[_ECC] = "N/A"
    if ecc.isdecimal() or ecc in ("Off", "On"):
        fields["ecc mode/current"] = "Disabled" if ecc == "Off" else "Enabled"
    return GpuDump(as_bdf(place["bdf"]) or NOWHERE, fields, number)


def _named(cut: str, mib: str) -> dict[str, str]:
    """The name of a GPU, of what nvidia-smi left of it and of the size of the memory."""
    begins = [model for model in _NAMED_BY_SIZE if len(cut) >= len("Tesla V100-SXM2") and model.startswith(cut)]
    return {"product name": f"{begins[0]}-{-(-int(mib) // 1024)}GB"} if begins and mib.isdecimal() else {}


def _next(cells: Sequence[str], row: int) -> dict[str, str] | None:
    """The fields of a GPU's second or third row; None for any other."""
    whole = [cell.strip() for cell in cells[:-1]]
    if row == 2:
        if len(whole) != 3 or whole[0] or whole[1] or not _MIG.fullmatch(whole[2]):
            return None
        pending = not whole[2] or whole[2].endswith("*")  # a star: the other mode is pending
        return {} if pending else dict.fromkeys(("mig mode/current", "mig mode/pending"), whole[2])
    fan = _FAN.fullmatch(whole[0]) if whole else None
    if fan is None:
        return None
    fields = {"fan speed": ERR} if fan["fan"] == ERR else {}
    fields |= {
        "performance state": fan["pstate"], "temperature/gpu current temp": fan["temp"],
        "power readings/power draw": fan["power"].strip(), "power readings/enforced power limit": fan["cap"].strip(),
    }  # fmt: skip
    if len(whole) > 1 and (memory := _MEMORY.fullmatch(whole[1])):
        fields |= {"fb memory usage/total": memory["total"], "fb memory usage/used": memory["used"]}
    if len(whole) > 2 and (mode := _MODE.fullmatch(whole[2])):
        fields["compute mode"] = mode["mode"]
    return fields
