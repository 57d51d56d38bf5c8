"""Names of devices and files that a site chose, in place of those that kernel, udev and common software give.

``rack7-storage`` tells whose machine it is, ``ibp12s0`` does not. A name made of a hardware address
(``enx0c42a15e7709``, ``rocexb8599f0300d1e2f4``) stays such a name, with the pseudonym of the address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dgxcheck.facts.missing import items_of
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.driver_words import is_word
from dgxcheck.source.recording.pseudonyms import Pseudonyms

# of a MAC, systemd udev-builtin-net_id.c; of a GUID, rdma-core rdma_rename.c
_MADE = "(?:en|wl|ww)x(?=[0-9a-f]{12}(?![0-9A-Za-z]))|(?:ib|iw|opa|rdma|roce)x(?=[0-9a-f]{16}(?![0-9A-Za-z]))"
MADE_OF_ADDRESS = f"(?<![0-9A-Za-z])(?P<made>{_MADE})(?P<address>[0-9a-f]+)"
_OF_ADDRESS = re.compile(MADE_OF_ADDRESS)
_NUMBERED = (
    "eth ib usb wlan bond team br bridge virbr vmbr docker lxcbr lxdbr cni tun tap tunl dummy vlan macvlan ipvlan ifb"
    " sit gre gretap erspan ip6tnl ip6gre ip_vti ip6_vti vxlan geneve wg hsi"
    " mlx4_ mlx5_ mlx5_bond_ hfi1_ qib irdma rdma i40iw bnxt_re bnxt_re_bond efa_ qedr hns_ rxe rxe_ siw siw_ erdma_"
    " mana_ ionic_ ocrdma mthca scif nes cxgb3_ cxgb4_ usnic_ rdmap vmw_pvrdma NIC"
)
# systemd.net-naming-scheme(7)
_PLACE = r"(?:en|eth|ib|wl|ww|sl|roce|iw|opa|rdma)(?:(?:np|[Ppsofdnucivrab])\d{1,6}){1,8}"
_COMMON = LazyPattern(
    rf"(?:(?:{'|'.join(_NUMBERED.split())})\d{{1,5}}|{_PLACE}|lo|bonding_masters|docker_gwbridge|virbr\d-nic"
    r"|flannel\.\d|vxlan\.calico|ovs-system)(?:[.:][0-9a-f]{1,4})?"
)
_CLASS = re.compile(r"(?P<kind>\w+) /sys/class/(?P<subject>net|infiniband|block)(?:/(?P<name>[^/]+))?")
OF_PCI = "text /sys/bus/pci/devices/"
"""Most facts by far; none of them names a device or file that a site chose."""
_KINDS = {"net": "net", "infiniband": "hca"}
_FOLDER = re.compile(r"(?P<kind>\w+) (?P<folder>/(?:etc/security|etc/systemd|usr/lib/systemd)/(?:[^/]+/)*[^/]+\.d)"
                     r"(?:/(?P<name>[^/]+))?")  # fmt: skip

# netdev_printk of net/core/dev.c: driver, function, interface; IFNAMSIZ is 16
_LOGGED = LazyPattern(
    r"(?<=;)[\w.-]{1,32} [0-9a-f:]{7,13}\.[0-7] (?P<name>[^\s:;()]{1,15})(?: \([a-z]{1,20}\))?: "
    r"|: renamed from (?P<old>[^\s:;()]{1,15})(?: \(|$)"
)
_PLAIN_DISK = r"(?:it|sd[a-z]{1,4}\d{0,3}|nvme\d{1,4}n\d{1,4}(?:p\d{1,3})?)(?:[ ,]|$)"
_REPORTED = {
    "zpool": LazyPattern(r"^pool (?P<pool>[\w.:-]{1,255})(?=: )"
                         rf"|(?:: |, |/)(?P<disk>(?!{_PLAIN_DISK})[^\s/,]{{1,250}})(?= is [A-Z]|,|$| ?\.\.$)"),
    "imex": LazyPattern(r"(?:: (?:\d{1,5} \()?|, | and )(?P<host>(?![\d.]+(?:[,) ]|$)|\S{0,253}:)[\w.-]{1,253})"
                        r"(?= and |[,)]|$)"),
}  # fmt: skip
"""By tool, names in its reports; those of disks in ``/dev/disk/by-id`` hold serial numbers (udev)."""
_SUSPENDED = LazyPattern(r"WARNING: Pool '(?P<pool>[\w .:-]{1,255})' has encountered")


class DeviceNames:
    """The names of one machine that a site chose, and what stands for them."""

    def __init__(self, pseudonyms: Pseudonyms, moments: Iterable[dict[str, Json]]) -> None:
        self._pseudonyms = pseudonyms
        self._chosen: dict[str, str] = {}
        folders: dict[str, set[str]] = {}
        for facts in moments:
            for key, fact in facts.items():
                if key.startswith(OF_PCI):
                    continue
                if match := _CLASS.match(key):
                    for name in _listed(match, fact):
                        self._learn(match["subject"], name)
                elif match := _FOLDER.match(key):
                    folders.setdefault(match["folder"], set()).update(_listed(match, fact))
                elif key.startswith("stated nic-name ") and isinstance(fact, str):
                    self._learn("infiniband", fact)
                elif key.startswith("kmsg ") and isinstance(fact, str):
                    for match in _LOGGED.finditer(fact):
                        self._learn("net", match["name"] or match["old"])
                    for match in _SUSPENDED.finditer(fact):
                        self._learn("pool", match["pool"])
                elif key.startswith("stated report ") and isinstance(fact, dict) and fact.get("tool") in _REPORTED:
                    for match in _REPORTED[str(fact["tool"])].finditer(str(fact.get("text"))):
                        self._learn(str(match.lastgroup), match[str(match.lastgroup)])
        self._files = {folder: _ranked(names) for folder, names in folders.items()}
        lines = sorted((name for name in self._chosen if not is_word(name)), key=len, reverse=True)
        chosen = "|".join(map(re.escape, lines)) or "(?!)"
        self._within = re.compile(rf"(?<![\w.-])(?:{chosen})(?![\w-]|\.\w)")

    def key(self, key: str) -> str:
        """A key with the pseudonym of the device or file that it names."""
        if match := _CLASS.match(key):
            name = match["name"]
            return key if name is None else f"{key[: match.start('name')]}{self.name(name)}{key[match.end('name') :]}"
        if (match := _FOLDER.match(key)) and match["name"]:
            return f"{key[: match.start('name')]}{self._files[match['folder']][match['name']]}"
        return self.within(key) if key.startswith("stated ") else key

    def names(self, key: str, names: list[str]) -> list[str]:
        """The entries of a directory, in order again."""
        if match := _FOLDER.match(key):
            return sorted(self._files[match["folder"]].get(name, name) for name in names)
        return sorted(map(self.name, names)) if _CLASS.match(key) else names

    def name(self, name: str) -> str:
        """What stands for a device's name."""
        return self._chosen.get(name) or self._of_address(name)

    def within(self, text: str) -> str:
        """Free text or the target of a link, in which names of devices may stand."""
        return self._of_address(self._within.sub(lambda match: self._chosen[match[0]], text))

    def _learn(self, subject: str, name: str) -> None:
        if subject == "block":
            if name.startswith("md_"):  # mdadm.conf(5), CREATE names=yes
                self._chosen[name] = self._pseudonyms.named("md_", name).replace("-", "")
        elif not _COMMON.fullmatch(name) and not _OF_ADDRESS.match(name):
            base, dot, vlan = name.rpartition(".")
            if dot and vlan.isdecimal():
                self._learn(subject, base)
                self._chosen[name] = f"{self.name(base)}.{vlan}"
            else:
                self._chosen[name] = self._pseudonyms.named(_KINDS.get(subject, subject), name)

    def _of_address(self, text: str) -> str:
        return _OF_ADDRESS.sub(lambda match: match["made"] + self._pseudonyms.identity(match["address"], True), text)


def _listed(match: re.Match[str], fact: Json) -> list[str]:
    """Names in a key, or in a list of names."""
    if match["name"] is not None:
        return [match["name"]]
    return [name for name in items_of(fact) if isinstance(name, str)]


def _ranked(names: set[str]) -> dict[str, str]:
    """Files by number, for the last of them counts: ``10-alice.conf`` -> ``000.conf``."""
    return {name: f"{rank:03d}{'.conf' if name.endswith('.conf') else ''}" for rank, name in enumerate(sorted(names))}
