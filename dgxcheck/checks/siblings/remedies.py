"""How a device is made like its siblings again, by the facts that differ: nvidia-smi(1), hdparm(8), lspci(8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dgxcheck.checks.siblings.compare import Compared

_SET: Mapping[str, str] = {
    "GpuModes.compute_mode": "-c {:d}", "GpuModes.persistence": "-pm {:d}", "GpuModes.operation_mode": "--gom={:d}",
    "GpuModes.operation_mode_pending": "--gom={:d}", "GpuMemory.ecc": "-e {:d}", "GpuMemory.ecc_pending": "-e {:d}",
    "GpuClocks.application.graphics": "-rac", "GpuClocks.application.memory": "-rac",
    "GpuClocks.auto_boost": "--auto-boost-default={:d}", "GpuClocks.auto_boost_default": "--auto-boost-default={:d}",
}  # fmt: skip
"""Options of nvidia-smi by the setting that they change, with the value of the others."""
_LINK = (
    "PciFunction.link_width", "PciFunction.link_gen", "PciFunction.max_link_gen", "PciFunction.max_link_width",
    "GpuPcie.link_width", "GpuPcie.max_link_gen", "GpuPcie.max_link_width",
)  # fmt: skip
_OF_LINKS = (
    "compare LnkCap and LnkSta with the others (lspci -vv -s BDF) and the slot's lane and speed settings in the"
    " firmware setup; reseat it at the next maintenance if they are the same"
)
_OF_CONTROL = (
    "compare its control words with those of the others (lspci -vvv -s BDF); look for a script that sets them (setpci,"
    " udev), for pcie_aspm and pci= on the kernel command line, and in the firmware setup"
)
_OF_DISKS = "compare it with the others (smartctl -i, hdparm -N); restore its full size before it is used in an array"


def remedy(odd: Collection[Compared]) -> str:
    """What to do about these facts of one device; empty where the remedy of the check serves."""
    facts = [each.leaf.fact for each in odd]
    if all(fact in _SET for fact in facts):
        commands = (f"nvidia-smi -i {each.sibling.subject.bdf} {_SET[each.leaf.fact]}" for each in odd)
        filled = (command.format(each.usual) for command, each in zip(commands, odd, strict=True))
        return f"if this was not intended, set it as on the others: {', '.join(dict.fromkeys(filled))}"
    if all(fact in _LINK for fact in facts):
        return _OF_LINKS
    if all(fact.startswith(("ConfigSpace.control.", "ConfigSpace.express.")) for fact in facts):
        return _OF_CONTROL
    return _OF_DISKS if all(fact.startswith("BlockDevice.") for fact in facts) else ""
