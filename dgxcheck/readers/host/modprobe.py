"""Modules that could not be loaded or built, or are of another version: modprobe, insmod, systemd-modules-load, dkms,
modinfo and nvidia-installer.

Messages: kmod, tools/modprobe.c and tools/insmod.c (the words behind are those of strerror(3)); dkms(8);
systemd, src/modules-load/modules-load.c; https://github.com/NVIDIA/nvidia-installer, kernel.c and
conflicting-kernel-modules.c; the driver containers of https://github.com/NVIDIA/gpu-driver-container.
"""

from __future__ import annotations

from dgxcheck.facts.faults import BY_WORD, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of, is_entered, rows, wordings

TOOL = "modprobe"
_MODULES = wordings("host/modules")
_NAME = r"(?:/\S{1,200}/)?(?P<module>[\w-]{2,40})(?:\.ko(?:\.\w{2,4})?)?"
_NOT_FOUND = LazyPattern(
    rf"(?:.{{0,80}}: )?(?:FATAL|ERROR): Module {_NAME} not found(?: in directory (?P<where>/\S{{1,120}}?))?\.?"
)
_NOT_INSERTED = LazyPattern(
    rf"(?:.{{0,120}}: )?(?:ERROR: could not|Failed to) insert (?:module )?'?{_NAME}'?: (?P<why>[A-Z][\w ,/]{{4,80}})"
    r"(?: \(see dmesg\))?"
)
_NOT_BUILT = LazyPattern(any_of("host/lines", "dkms, not built"))
_OF_DKMS = LazyPattern(any_of("host/lines", "dkms"))
_WHY = {row["why"]: BY_WORD[row["fault"]] for row in rows("host/module_errors")}
_NOTHING = ("File exists", "Operation not permitted")
"""It is loaded already; who asked is not root of the host, or the kernel is locked down, which its log says."""
_BY_UDEV = wordings("host/results", TOOL)
"""Its rules load the rest of the driver once the module ``nvidia`` has a GPU."""
_NOT_LOADED = LazyPattern(rf"ERROR: Unable to load the kernel module '{_NAME}'\..{{0,900}}")
_REASON = LazyPattern(r"(?:-> )?Kernel module load error: (?P<why>[A-Z][\w ,]{4,80})")
_INSTALLED = LazyPattern(
    r"(?:-> )?Installation of the (?:kernel module for the )?NVIDIA .{1,80} is now complete\..{0,300}"
)
"""What failed before that does not count."""
_FAILED = wordings("host/installer")


def read_installer(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Why the driver was not installed; nothing of that where it was in the end."""
    part = ToolPart("nvidia-installer")
    module = why = ""
    failed: dict[str, tuple[Outcome, FaultKind | None, str]] = {}
    for number, text in numbered(lines):
        if match := _NOT_LOADED.fullmatch(text):
            module = match["module"]
        elif module and (match := _REASON.fullmatch(text)):
            why = match["why"]
        elif _INSTALLED.fullmatch(text):
            module, failed = "", {}
        elif row := next((row for row in _FAILED if row.words.search(text)), None):
            failed[row.topic] = row.outcome, row.fault, row.text
        else:
            continue
        part.lines.add(number)
    if module:
        reason = f": {why}" if why else ""
        failed["module"] = "warn", _WHY.get(why, Fault.DRIVER_NOT_LOADED), f"could not load {module}{reason}"
    for topic, (outcome, fault, shown) in failed.items():
        part.add(HOST, topic, outcome, fault, shown)
    return part.imported(sound="installation")


def read_modprobe(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Modules of the NVIDIA driver: those that are not there, and those that the kernel refused; others are no matter
    of this machine's GPUs. Those that CUDA needs fail; without the rest some traffic takes a longer way. What dkms
    could not build may be for a kernel that does not run.
    """
    part, kernel = ToolPart(TOOL), ""
    for number, text in numbered(lines):
        if match := _NOT_FOUND.fullmatch(text):
            where = f" in {match['where']}" if match["where"] else " of this kernel"
            _add(part, match["module"], Fault.MODULE_NOT_BUILT, f"no module {match['module']}{where}")
        elif match := _NOT_INSERTED.fullmatch(text):
            if match["why"] not in _NOTHING:
                fault = _WHY.get(match["why"], Fault.DRIVER_NOT_LOADED)
                _add(part, match["module"], fault, f"could not load {match['module']}: {match['why']}")
        elif is_entered(part, _BY_UDEV, number, text):
            pass
        elif match := _NOT_BUILT.fullmatch(text):
            what = f"{match['module']} {match['version']}" if match["module"] else match["of"]
            lacks = f": headers of kernel {match['kernel']} are missing" if match["kernel"] else ""
            lacks = lacks or (f" for kernel {kernel}" if kernel else "")
            part.add(HOST, "dkms", "warn", Fault.MODULE_NOT_BUILT, f"dkms could not build {what}{lacks}")
        elif match := _OF_DKMS.fullmatch(text):
            kernel = match["kernel"] or kernel
            part.beside.add(number)
            continue
        else:
            continue
        part.lines.add(number)
    return part.imported()


def _add(part: ToolPart, module: str, fault: FaultKind, text: str) -> None:
    if row := next((row for row in _MODULES if row.words.fullmatch(module)), None):
        fault_of_row = fault if row.outcome == "fail" else row.fault
        part.add(HOST, f"module-{module.replace('_', '-')}", row.outcome, fault_of_row, text)


_BUILT = LazyPattern(
    r"(?P<module>[\w.+-]{2,60})(?:/|, )(?P<version>[\w.+:~-]{1,60})(?:, (?P<kernel>[\w.+~-]{3,80}), \w{3,10})?"
    r": (?P<state>installed|built|added)\b.{0,400}"
)
"""``Diff between built and installed module`` is also what a signature or compression makes."""
_OF_THE_DRIVER = LazyPattern(r"nvidia(?!-fs|-peer)[\w.-]{0,40}")
_RELEASE = r"[2-9]\.\d{1,2}\.\d{1,3}[-.][\w.+~-]{1,60}"
_RUNS = LazyPattern(
    rf"(?:Linux \S{{1,255}} )?(?P<kernel>{_RELEASE})(?: #\d.{{1,200}})?"
    rf"|filename: {{1,20}}/lib/modules/(?P<own>{_RELEASE})/\S{{0,120}}nvidia\S{{0,40}}"
)
_VERSION = LazyPattern(any_of("host/lines", "version of the driver"))


def read_built(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``dkms status``, ``modinfo nvidia``, ``uname -r`` and the file of the loaded module: no module for the kernel
    that runs, where none is loaded, or another version on disk than is loaded.
    """
    part = ToolPart("dkms and modinfo")
    rows, kernels, versions, is_own = [], set[str](), dict[str, str](), True
    for number, text in numbered(lines):
        if row := _BUILT.fullmatch(text):
            rows += [row] if _OF_THE_DRIVER.fullmatch(row["module"]) else []
            part.lines.add(number)
        elif match := _RUNS.fullmatch(text):
            kernels.add(match["kernel"] or match["own"])
            is_own |= match["own"] is not None
            part.beside.add(number)
        elif text.startswith("filename:"):
            is_own = False
        elif (match := _VERSION.fullmatch(text)) and (is_own or match["loaded"]):
            versions |= {name: version for name, version in match.groupdict().items() if version}
            part.lines.add(number)
    loaded, on_disk = versions.get("loaded"), versions.get("on_disk")
    runs = next(iter(kernels)) if len(kernels) == 1 else ""
    if not loaded and rows and not any(row["state"] == "installed" and runs in ("", row["kernel"]) for row in rows):
        has = ", ".join(f"{row['version']} is {row['state']}{f' for {kernel}' if (kernel := row['kernel']) else ''}"
                        for row in rows[:3])  # fmt: skip
        text = f"no nvidia module is installed{f' for kernel {runs}' if runs else ''}: {has}"
        part.add(HOST, "dkms", "warn", Fault.MODULE_NOT_BUILT, text)
    elif loaded and on_disk and loaded != on_disk and len(kernels) < 2:
        part.add(HOST, "version", "warn", Fault.DRIVER_MISMATCH, f"{loaded} is loaded, {on_disk} is on disk")
    return part.imported()
