"""Identities leave a machine as pseudonyms: equal ones map alike wherever they occur, their form is kept.

Which facts hold an identity stands in ``_WHOLE`` (the fact is one) and ``_WITHIN`` (free text that may hold some).
Names made by udev of a hardware address (``enx0c42a15e7709``) and rdma-core of a node GUID (``rocexb8599f0300d1e2f4``)
are replaced as these are, in directories, keys and link targets; devices of such names may then sort otherwise.
Of the kernel command line all names of parameters stay, and the values of those in ``_HARMLESS``, the rest is hidden.
Of the files in ``_CONFIGURATION`` the lines stay that set memlock, without the user or group whose limit it is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable

from dgxcheck.facts.limits import KEY_BYTES, LEAST_KEY_BYTES
from dgxcheck.facts.missing import BadInput
from dgxcheck.rootfs import OPENING, read_descriptor
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording.binary import from_rows, to_rows
from dgxcheck.source.recording.config_space import publishable
from dgxcheck.source.recording.driver_words import is_word
from dgxcheck.source.recording.keys import GroupedFacts, flatten, insert

_WHOLE = re.compile(
    r"text /sys/class/infiniband/[^/]+/(node_guid|sys_image_guid)"
    r"|text /sys/class/net/[^/]+/address"
    r"|text /sys/class/dmi/id/\w*serial"
    r"|text /proc/sys/kernel/random/boot_id"
    r"|nvml nvmlDeviceGet(UUID|Serial) .*"
)
_HOST = "text /proc/sys/kernel/hostname"
_PROCESS = "nvml nvmlSystemGetProcessName "
_FABRIC = "nvml nvmlDeviceGetGpuFabricInfo "
_ADDRESS = re.compile(r"text /sys/class/net/[^/]+/address")
_WITHIN = re.compile(r"text (/sys/class/infiniband/[^/]+/node_desc|/etc/(dgx-release|os-release))")
_CONFIGURATION = re.compile(r"text (/etc/security/|/etc/systemd/|/usr/lib/systemd/)")
_LIMITS_MEMLOCK = re.compile(r"\s*(?P<who>[^\s#]+)(?P<rest>\s+(?:soft|hard|-)\s+memlock\s+[\w-]+)\s*(?:#.*)?")
_UNIT_LIMITS_MEMLOCK = re.compile(r"\s*(?:Default)?LimitMEMLOCK\s*=[\s\w:-]*")
_EVERYONE = ("*", "root", "%", "@", "%%")
_KERNEL_LOG = "kmsg "
_IN_KERNEL_LOG = re.compile(
    r"(?P<number>(?i:\bserial(?:[ _]?(?:number|no\.?))?|\bs/n) ?(?:is |[:=]) ?)(?P<serial>[^\s,]+)"
    r"|(?P<mac>(?<![\w:-])(?=[0-9]{0,11}[a-f])(?=[a-f]{0,11}[0-9])[0-9a-f]{12}(?![\w:-]))"
    r"|(?P<named>name=|(?i:client|process|comm) ')(?P<process>(?!<unknown>)[^,']+)"
)
_COMMAND_LINE = "text /proc/cmdline"
_PARAMETER = re.compile(r'(?:"[^"]*(?:"|\Z)|[^\s"])+')  # blanks within double quotes do not end one
_FOR_INIT = re.compile(r"(?<!\S)--(?!\S)")
_PLAIN_NAME = re.compile(r"[\w.:-]*")
_HARMLESS = re.compile(
    r"(intel_|amd_)?iommu|pci|pcie_\w+|vfio_pci\.\w+|nvidia[\w.]*|nouveau\.[\w.]+|(modprobe|rd\.driver)\.blacklist"
    r"|numa_balancing|(default_)?hugepagesz|hugepages|transparent_hugepage|isolcpus|nohz_full|mitigations"
    r"|(processor|intel_idle|cpufreq)\.[\w.]+|console|quiet|ro|rw|splash|crashkernel|BOOT_IMAGE|selinux|apparmor"
    r"|systemd\.unified_cgroup_hierarchy|cgroup_\w+"
)  # with _ for -, as the kernel takes them
_BUILDER = "text /proc/version"
# those of distributions stay
_BUILT_BY = re.compile(r"\((?!(?:buildd|mockbuild|debian-kernel|geeko|abuild)@)[^\s()]{1,255}@[^\s()]{1,255}\)")
_IMAGE = re.compile(r"(?:(?:\(hd\d{1,3},[a-z]{0,6}\d{1,3}\))?/(?:boot/)?)?vmlinu[xz](?:-\d[\w.+~-]{0,64})?", re.ASCII)
_HEX = "[0-9a-fA-F]"
_MAC = rf"{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5}}"
# of a MAC, systemd udev-builtin-net_id.c; of a GUID, rdma-core rdma_rename.c
_MADE = "(?:en|wl|ww)x(?=[0-9a-f]{12}(?![0-9A-Za-z]))|(?:ib|iw|opa|rdma|roce)x(?=[0-9a-f]{16}(?![0-9A-Za-z]))"
_NAME = f"(?<![0-9A-Za-z])(?P<made>{_MADE})(?P<address>[0-9a-f]+)"
_IN_TEXT = "|".join(
    (
        r'(?P<serial>^\w*SERIAL\w*="?)(?P<number>[^"\n]+)',
        rf"\b{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\b",  # UUID
        # machine id, GUID, WWN; not the status of a machine check, "Bank 7: be00000000800400", "_STATUS[..]: 0x9c20.."
        rf"(?<!\bBank \d: )(?<!\bBank \d\d: )(?<!\]: )\b(?:0x)?(?:{_HEX}{{32}}|{_HEX}{{16}})\b",
        rf"(?<![\w:]){_HEX}{{1,4}}(?::{_HEX}{{1,4}}){{7}}(?![\w:])",  # IPv6, EUI-64
        rf"(?<![\w:]){_HEX}{{4}}(?::{_HEX}{{4}}){{3}}(?![\w:])",  # GUID as sysfs writes it
        rf"(?<![\w:.])(?:{_HEX}{{1,4}}:)+(?::{_HEX}{{1,4}})+(?![\w:])",  # IPv6 with its zeros left out
        # BOOTIF=01-0c-42-..: PXE puts the hardware type before the address
        rf"\b(?P<type>01[:-])(?P<mac>{_MAC})(?![:-]?\w)|(?<!\b{_HEX}{{2}}[:-])\b{_MAC}(?![:-]?\w)",
        r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?!\.\d)",
        _NAME,
    )
)
_IDENTITY = re.compile(_IN_TEXT, re.MULTILINE)
_NAMED = re.compile(r"\w+ /sys/class/(?:net|infiniband)(?:/|$)")
_PREFIX = re.compile(r"(?:MIG-)?(?:GPU-)?(?:0x)?")
_QPN_AND_PREFIX = len("80:00:00:48:fe:80:00:00:00:00:00:00:")  # of an IPoIB address; the port's GUID follows


def site_key(root: str = "/") -> bytes:
    """The site's key from the state directory; random where there is none, so that pseudonyms differ each time.

    Of root, only the system's directory counts: nobody else can choose it. BadInput for a key that others can read or
    could have written, or that can be guessed.
    """
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = os.path.join(os.path.join(root, "var/lib") if os.geteuid() == 0 else state, "dgxcheck", "site.key")
    try:
        fd = os.open(path, OPENING)
        status = os.fstat(fd)
        key = read_descriptor(fd, path, KEY_BYTES).strip()
    except FileNotFoundError:
        return os.urandom(32)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise BadInput(f"{path}: must belong to the user who runs dgxcheck, with mode 0600; make a new key")
    if len(key) < LEAST_KEY_BYTES:
        raise BadInput(f"{path}: a key of less than {LEAST_KEY_BYTES} bytes; make one with: openssl rand -hex 32")
    return key


def pseudonym(identity: str, key: bytes) -> str:
    """What one identity is called in a recording that was saved under this key."""
    return _Replacer(key, "").identity(identity)


def mark(key: bytes) -> str:
    """A site key's own name, which tells nothing of it: recordings with the same one call a device alike."""
    return hmac.new(key, b"dgxcheck: the name of this key", hashlib.sha256).hexdigest()[:16]


def anonymized(
    lines: GroupedFacts, later: Iterable[tuple[float, GroupedFacts]], key: bytes
) -> tuple[GroupedFacts, list[tuple[float, GroupedFacts]]]:
    """The same lines with every identity replaced."""
    facts = flatten(lines)
    host = facts.get(_HOST)
    replace = _Replacer(key, host.strip() if isinstance(host, str) else "")
    return replace.lines(lines), [(at_s, replace.lines(changed)) for at_s, changed in later]


class _Replacer:
    """One key and one machine: turns identities into pseudonyms."""

    def __init__(self, key: bytes, host: str) -> None:
        self._key = key
        self._host = host
        self._known: dict[str, str] = {}
        short = host.partition(".")[0]
        telling = len(short) > 1 and not is_word(short)
        named = rf"(?i:\b{re.escape(short)}(?:\.[\w.-]+)?)\b" if telling else "(?!)"
        self._with_host = re.compile(f"(?P<host>{named})|{_IN_TEXT}", re.MULTILINE)

    def lines(self, lines: GroupedFacts) -> GroupedFacts:
        new: GroupedFacts = {}
        for key, fact in sorted(flatten(lines).items()):
            insert(new, self._names(key) if _NAMED.match(key) else key, self._fact(key, fact))
        return new

    def _fact(self, key: str, fact: Json) -> Json:
        if isinstance(fact, str):
            return self._text(key, fact)
        if isinstance(fact, list) and key.startswith("names ") and _NAMED.match(key):
            names = [self._names(name) for name in fact if isinstance(name, str)]
            return [*sorted(names)] if len(names) == len(fact) else fact
        if key.startswith("data ") and (config := from_rows(fact)) is not None:
            return to_rows(publishable(config))
        if isinstance(fact, dict) and "missing" in fact and isinstance(fact.get("detail"), str):
            return fact | {"detail": self._free(str(fact["detail"]))}
        if isinstance(fact, dict) and key.startswith(_FABRIC) and isinstance(fact.get("clusterUuid"), str):
            return fact | {"clusterUuid": self.identity(str(fact["clusterUuid"]))}
        return fact

    def _text(self, key: str, text: str) -> str:
        if _ADDRESS.fullmatch(key) and len(text.strip()) == 59:
            return text[:_QPN_AND_PREFIX] + self.identity(text[_QPN_AND_PREFIX:])
        if _WHOLE.fullmatch(key):
            return self.identity(text)
        if key == _HOST:
            return f"{self._host_name(text.strip())}{text[len(text.rstrip()) :]}"
        if key.startswith(_PROCESS):
            return f"process-{self._digest(text)[:8]}"
        if key.startswith(_KERNEL_LOG):
            return self._kernel_line(text)
        if _CONFIGURATION.match(key):
            return "\n".join(map(self._limits_line, text.split("\n")))
        if key == _BUILDER:
            return _BUILT_BY.sub("(hidden)", text, count=1)
        if key == _COMMAND_LINE:
            return self._command_line(text)
        if key.startswith("link "):
            return self._free(text)
        return self._with_host.sub(self._match, text) if _WITHIN.fullmatch(key) else text

    def _kernel_line(self, text: str) -> str:
        """A line of the kernel log: serial numbers and processes by the words before them, the rest as free text."""

        def replaced(match: re.Match[str]) -> str:
            if match["serial"]:
                return match["number"] + self.identity(match["serial"])
            if match["mac"]:
                return self.identity(match["mac"])
            return f"{match['named']}process-{self._digest(match['process'])[:8]}"

        seconds, semicolon, message = text.partition(";")
        return f"{seconds}{semicolon}{_IN_KERNEL_LOG.sub(replaced, self._with_host.sub(self._match, message))}"

    @staticmethod
    def _limits_line(line: str) -> str:
        """A line that sets memlock, without whose limit it is; all others are empty, so that their numbers stay."""
        if _UNIT_LIMITS_MEMLOCK.fullmatch(line):
            return line
        if (found := _LIMITS_MEMLOCK.fullmatch(line)) is None:
            return ""
        return f"{found['who'] if found['who'] in _EVERYONE else 'hidden'}{found['rest']}"

    def _free(self, text: str) -> str:
        """Free text that names no host; the same few texts come a thousand times."""
        if text not in self._known:
            self._known[text] = _IDENTITY.sub(self._match, text)
        return self._known[text]

    def _names(self, text: str) -> str:
        return re.sub(_NAME, lambda match: match["made"] + self.identity(match["address"]), text)

    def _command_line(self, text: str) -> str:
        """The kernel's parameters one by one; what follows ``--`` is for init and may be anything."""
        end = found.end() if (found := _FOR_INIT.search(text)) else len(text)
        return _PARAMETER.sub(self._parameter, text[:end]) + re.sub(r"\S+", "hidden", text[end:])

    def _parameter(self, match: re.Match[str]) -> str:
        """``root=/dev/sda2`` -> ``root=hidden``; ``quiet`` and ``iommu=pt`` but for identities as they stand."""
        name, has_value, value = match[0].partition("=")
        if not has_value:
            return self._with_host.sub(self._match, name)
        bare = name.lstrip('"')
        if not _HARMLESS.fullmatch(bare.replace("-", "_")):
            return f"{bare}=hidden" if _PLAIN_NAME.fullmatch(bare) else "hidden"
        if bare == "BOOT_IMAGE":  # (http,10.0.0.1)/images/HOST/vmlinuz-5.4.0: where it comes from tells too much
            image = value if _IMAGE.fullmatch(value) else value.rpartition("/")[2]
            value = image if _IMAGE.fullmatch(image) else "hidden"
        return f"{name}={self._with_host.sub(self._match, value)}"

    def _match(self, match: re.Match[str]) -> str:
        parts = match.groupdict()
        if parts.get("host"):
            return self._host_name(self._host)
        for before, after in (("serial", "number"), ("type", "mac"), ("made", "address")):
            if parts[before]:
                return f"{parts[before]}{self.identity(parts[after])}"
        return self.identity(match[0])

    def identity(self, text: str) -> str:
        """Digits for digits, letters for letters (a to f where all are hexadecimal), all else as it stands."""
        prefix = _PREFIX.match(text)
        start = prefix.end() if prefix else 0
        plain = "".join(filter(str.isalnum, text[start:]))
        if not plain.strip("0"):
            return text
        numeral = plain.isdigit() and len(plain) not in (12, 16, 32)  # those are a MAC, a GUID and a UUID
        hexadecimal = re.fullmatch(f"{_HEX}+", plain) is not None and not numeral
        stream = iter(self._stream(plain.lower(), len(plain)))
        return text[:start] + "".join(_like(char, next(stream), hexadecimal) if char.isalnum() else char
                                      for char in text[start:])  # fmt: skip

    def _host_name(self, host: str) -> str:
        return f"host-{self._digest(host)[:8]}"

    def _digest(self, text: str) -> str:
        return hmac.new(self._key, text.lower().encode(), hashlib.sha256).hexdigest()

    def _stream(self, text: str, length: int) -> bytes:
        blocks = (hmac.new(self._key, f"{n} {text}".encode(), hashlib.sha256).digest() for n in range(length // 32 + 1))
        return b"".join(blocks)


def _like(char: str, byte: int, hexadecimal: bool) -> str:
    if hexadecimal:
        digit = "0123456789abcdef"[byte % 16]
        return digit.upper() if char.isupper() else digit
    if char.isdigit():
        return "0123456789"[byte % 10]
    letter = "abcdefghijklmnopqrstuvwxyz"[byte % 26]
    return letter.upper() if char.isupper() else letter
