"""The kernel's command line: all names of parameters stay, and the values of those that tell nothing of the site."""

from __future__ import annotations

import re
from collections.abc import Callable

_PARAMETER = re.compile(r'(?:"[^"]*(?:"|\Z)|[^\s"])+')  # blanks within double quotes do not end one
_BARE_MAC = re.compile(r"(?<![\w-])[0-9a-fA-F]{12}(?![\w-])")
_FOR_INIT = re.compile(r"(?<!\S)--(?!\S)")
_SWITCH = re.compile(r"[a-z-][a-z\d_.-]*")
_PLAIN_NAME = re.compile(r"[\w.:-]*")
_HARMLESS = re.compile(
    r"(intel_|amd_)?iommu|pci|pcie_\w+|vfio_pci\.\w+|nvidia[\w.]*|nouveau\.[\w.]+|(modprobe|rd\.driver)\.blacklist"
    r"|numa_balancing|(default_)?hugepagesz|hugepages|transparent_hugepage|isolcpus|nohz_full|mitigations"
    r"|(processor|intel_idle|cpufreq)\.[\w.]+|console|quiet|ro|rw|splash|crashkernel|BOOT_IMAGE|selinux|apparmor"
    r"|systemd\.unified_cgroup_hierarchy|cgroup_\w+"
)  # with _ for -, as the kernel takes them
_IMAGE = re.compile(r"(?:(?:\(hd\d{1,3},[a-z]{0,6}\d{1,3}\))?/(?:boot/)?)?vmlinu[xz](?:-\d[\w.+~-]{0,64})?", re.ASCII)


def publishable(text: str, free_text: Callable[[str], str]) -> str:
    """The parameters one by one; what follows ``--`` is for init and may be anything."""

    def parameter(match: re.Match[str]) -> str:
        return _parameter(match[0], free_text)

    end = found.end() if (found := _FOR_INIT.search(text)) else len(text)
    return _PARAMETER.sub(parameter, text[:end]) + re.sub(r"\S+", "hidden", text[end:])


def _parameter(text: str, free_text: Callable[[str], str]) -> str:
    """``root=/dev/sda2`` -> ``root=hidden``; ``quiet`` and ``iommu=pt`` but for identities as they stand."""
    name, has_value, value = text.partition("=")
    if not has_value:
        public = free_text(name)
        return public if public != name or _SWITCH.fullmatch(name) else "hidden"
    bare = name.lstrip('"')
    if not _HARMLESS.fullmatch(bare.replace("-", "_")):
        return f"{bare}=hidden" if _PLAIN_NAME.fullmatch(bare) else "hidden"
    if bare == "BOOT_IMAGE":  # (http,10.0.0.1)/images/HOST/vmlinuz-5.4.0: where it comes from tells too much
        image = value if _IMAGE.fullmatch(value) else value.rpartition("/")[2]
        value = image if _IMAGE.fullmatch(image) else "hidden"
    return f"{name}={_BARE_MAC.sub('hidden', free_text(value))}"
