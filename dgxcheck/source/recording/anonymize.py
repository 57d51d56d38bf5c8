"""Identities leave a machine as pseudonyms: equal ones map alike wherever they occur, their form is kept.

The first pass goes by keys: which facts hold an identity stands in ``_WHOLE`` (the fact is one) and ``_WITHIN`` (free
text that may hold some). The second (``known_identities.py``) looks everywhere for what the first one replaced.
Names of devices and files that a site chose are replaced as ``device_names.py`` has it; devices of such names may then
sort otherwise. Of the files in ``_CONFIGURATION`` the lines stay that set memlock, without the user or group whose
limit it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dgxcheck.facts import firmware
from dgxcheck.facts.firmware import PURPOSE, UUID, keywords, read_only
from dgxcheck.facts.sysfs import SMBIOS
from dgxcheck.source.protocol import Json
from dgxcheck.source.recording import command_line
from dgxcheck.source.recording.config_space import publishable, serial_numbers
from dgxcheck.source.recording.device_names import OF_PCI, DeviceNames
from dgxcheck.source.recording.free_text import OF_PERSON, FreeText, users_of
from dgxcheck.source.recording.keys import GroupedFacts, flatten, from_rows, grouped, place, to_rows
from dgxcheck.source.recording.known_identities import KnownIdentities
from dgxcheck.source.recording.pseudonyms import Pseudonyms

_WHOLE = re.compile(
    r"text /sys/class/infiniband/[^/]+/(node_guid|sys_image_guid)"
    r"|text /sys/class/net/[^/]+/address"
    r"|text /sys/class/dmi/id/\w*(?:serial|asset_tag)"
    r"|text /proc/sys/kernel/random/boot_id"
    r"|nvml nvmlDeviceGet(UUID|Serial) .*"
)
_HOST = "text /proc/sys/kernel/hostname"
_PROCESS = "nvml nvmlSystemGetProcessName "
_COMM = re.compile(r"text /proc/\d{1,10}/comm")
"""Of what runs in the control group of a scheduler: jobs too."""
_SCHEDULERS = ("slurmd\n", "pbs_mom\n")
_FABRIC = "nvml nvmlDeviceGetGpuFabricInfo "
_ADDRESS = re.compile(r"text /sys/class/net/[^/]+/address")
_DESCRIPTION = re.compile(r"text /sys/class/infiniband/[^/]+/node_desc")
_WITHIN = re.compile(r"text /etc/(dgx-release|os-release)")
_CLASS_LINK = re.compile(r"link /sys/class/(net|infiniband|block)/")
_CONFIGURATION = re.compile(r"text (/etc/security/|/etc/systemd/|/usr/lib/systemd/)")
_SIZE = r"(?:\d{1,20}[BKMGTPE]?|-1|unlimited|infinity)"
_LIMITS_MEMLOCK = re.compile(rf"\s*(?P<who>[^\s#]+)(?P<rest>\s+(?:soft|hard|-)\s+memlock\s+{_SIZE})\s*(?:#.*)?")
_UNIT_LIMITS_MEMLOCK = re.compile(rf"\s*(?:Default)?LimitMEMLOCK\s*=\s*(?:{_SIZE}(?::{_SIZE})?\s*)?")
_EVERYONE = ("*", "root", "%", "@", "%%")
_KERNEL_LOG = "kmsg "
_STAMP = re.compile(r"[\d.]{1,32};")
_STATED = "stated "
_BUILT_BY = re.compile(rf"\({OF_PERSON}[^\s()]{{1,255}}@[^\s()]{{1,255}}\)")
_NVRM_BUILT_BY = re.compile(r"(?<= Build  )\([^\s()]{0,255}@[^\s()]{0,255}\)")
"""Who built NVIDIA's module: with DKMS root at this machine, in a package its distribution's builder."""
_QPN_AND_PREFIX = len("80:00:00:48:fe:80:00:00:00:00:00:00:")  # of an IPoIB address; the port's GUID follows


def pseudonym(identity: str, key: bytes) -> str:
    """What one identity is called in a recording that was saved under this key."""
    return Pseudonyms(key).identity(identity)


def anonymized(
    lines: GroupedFacts, later: Iterable[tuple[float, GroupedFacts]], key: bytes, hosts: Sequence[str] = ()
) -> tuple[GroupedFacts, list[tuple[float, GroupedFacts]]]:
    """The same lines with every identity replaced; a kind of fact that is not known is left out.

    ``hosts`` are names that the facts themselves do not show to be one.
    """
    times, changes = [], [_keyed(lines)]
    for at_s, changed in later:
        times.append(at_s)
        changes.append(_keyed(changed))
    first, *others = map(grouped, _replaced(changes, Pseudonyms(key), hosts))
    return first, list(zip(times, others, strict=True))


def _keyed(lines: GroupedFacts) -> dict[str, Json]:
    return {key: fact for key, fact in flatten(lines).items() if place(key) is not None}


def _replaced(
    moments: Sequence[dict[str, Json]], pseudonyms: Pseudonyms, hosts: Sequence[str]
) -> list[dict[str, Json]]:
    host = moments[0].get(_HOST)
    people: set[str] = set()
    for facts in moments:
        for key, fact in facts.items():
            if key.startswith(_PROCESS) and isinstance(fact, str):
                people.add(fact)
            elif key.startswith((_KERNEL_LOG, _STATED)):
                texts = (one for one in (fact.values() if isinstance(fact, dict) else (fact,)) if isinstance(one, str))
                people |= {user for text in texts for user in users_of(text)}
    text = FreeText(pseudonyms, [host.strip(), *hosts] if isinstance(host, str) else hosts, people)
    names = DeviceNames(pseudonyms, moments)
    by_key = _ByKey(pseudonyms, names, text)
    once = [{names.key(key): by_key.fact(key, fact) for key, fact in facts.items()} for facts in moments]
    known = KnownIdentities(pseudonyms.replaced)
    return [known.facts(facts) for facts in once]


class _ByKey:
    """The first pass."""

    def __init__(self, pseudonyms: Pseudonyms, names: DeviceNames, text: FreeText) -> None:
        self._pseudonyms = pseudonyms
        self._names = names
        self._free = text
        self._known: dict[str, str] = {}

    def fact(self, key: str, fact: Json) -> Json:
        if isinstance(fact, str):
            return self._text(key, fact)
        if isinstance(fact, list) and key.startswith("names "):
            names = [name for name in fact if isinstance(name, str)]
            return [*map(self._free.formed, self._names.names(key, names))] if len(names) == len(fact) else fact
        if key.startswith("data ") and key.endswith("/vpd") and (data := from_rows(fact)) is not None:
            texts = dict(keywords(data))
            kept = {name: text if PURPOSE in text else "" for name, text in texts.items()}
            return to_rows(read_only(kept | {UUID: self._identity(texts[UUID])} if UUID in texts else kept))
        if key == f"data {SMBIOS}" and (table := from_rows(fact)) is not None:
            return to_rows(firmware.publishable(table, self._identity))
        if key.startswith("data ") and (config := from_rows(fact)) is not None:
            for serial in serial_numbers(config):
                self._identity(serial)
            return to_rows(publishable(config))
        if isinstance(fact, dict) and "missing" in fact and isinstance(fact.get("detail"), str):
            return fact | {"detail": self._message(str(fact["detail"]))}
        if isinstance(fact, dict) and key.startswith(_FABRIC) and isinstance(fact.get("clusterUuid"), str):
            return fact | {"clusterUuid": self._identity(str(fact["clusterUuid"]))}
        if isinstance(fact, dict):
            return {name: self._member(key, name, inner) for name, inner in fact.items()}
        return fact

    def _member(self, key: str, name: str, fact: Json) -> Json:
        if not isinstance(fact, str):
            return fact
        return self._message(fact) if key.startswith(_STATED) or name == "detail" else self._free.formed(fact)

    def _message(self, text: str) -> str:
        """What a driver or a tool says, in which anything may stand; the same few come a thousand times."""
        if text not in self._known:
            self._known[text] = self._names.within(self._free.kernel_message(_NVRM_BUILT_BY.sub("(hidden)", text)))
        return self._known[text]

    def _text(self, key: str, text: str) -> str:
        if key.startswith(OF_PCI):
            return self._free.formed(text)
        if _ADDRESS.fullmatch(key) and len(text.strip()) == 59:
            return text[:_QPN_AND_PREFIX] + self._identity(text[_QPN_AND_PREFIX:])
        if _WHOLE.fullmatch(key):
            return self._identity(text)
        if key == _HOST:
            return f"{self._free.host_name(text.strip())}{text[len(text.rstrip()) :]}"
        if key.startswith(_PROCESS) or (_COMM.fullmatch(key) and text not in _SCHEDULERS):
            return self._pseudonyms.named("process", text.strip())
        if key.startswith(_KERNEL_LOG):
            end = stamp.end() if (stamp := _STAMP.match(text)) else 0
            return f"{text[:end]}{self._message(text[end:])}"
        if _CONFIGURATION.match(key):
            return "\n".join(map(_limits_line, text.split("\n")))
        if key == "text /etc/nvidia-imex/nodes_config.cfg":
            return "".join("node\n" for line in text.splitlines() if line.partition("#")[0].strip())
        if key == "text /proc/version":
            return self._free.formed(_BUILT_BY.sub("(hidden)", text, count=1))
        if key == "text /proc/cmdline":
            return command_line.publishable(text, lambda part: self._free.formed(self._free.text(part)))
        if key.startswith("link "):
            target = self._free.formed(self._free.without_host(text))
            return self._names.within(target) if _CLASS_LINK.match(key) else target
        if key.startswith("stated nic-name "):
            return self._names.name(text)
        if _DESCRIPTION.fullmatch(key):
            return self._names.within(self._free.description(text))
        if key.startswith(_STATED):
            return self._message(text)
        text = self._free.text(text) if _WITHIN.fullmatch(key) else _NVRM_BUILT_BY.sub("(hidden)", text)
        return self._free.formed(text)

    def _identity(self, text: str) -> str:
        return self._pseudonyms.identity(text, known=True)


def _limits_line(line: str) -> str:
    """A line that sets memlock, without whose limit it is; all others are empty, so that their numbers stay."""
    if _UNIT_LIMITS_MEMLOCK.fullmatch(line):
        return line
    if (found := _LIMITS_MEMLOCK.fullmatch(line)) is None:
        return ""
    return f"{found['who'] if found['who'] in _EVERYONE else 'hidden'}{found['rest']}"
