"""Text in which identities may stand anywhere: lines of the kernel's log, descriptions, reasons of gaps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.source.recording.device_names import MADE_OF_ADDRESS
from dgxcheck.source.recording.driver_words import is_word
from dgxcheck.source.recording.pseudonyms import Pseudonyms

_HEX = "[0-9a-fA-F]"
_MAC = rf"{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5}}"
_BARE = rf"\b(?:0x)?(?:{_HEX}{{32}}|{_HEX}{{16}})\b"
"""Machine id, GUID, WWN."""
_FORMED = "|".join(
    (
        r'(?P<serial>^\w*SERIAL\w*="?)(?P<number>[^"\n]+)',
        rf"(?P<uuid>\b{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\b)",
        rf"(?<![\w:]){_HEX}{{1,4}}(?::{_HEX}{{1,4}}){{7}}(?![\w:])",  # IPv6, EUI-64
        rf"(?P<guid>(?<![\w:]){_HEX}{{4}}(?::{_HEX}{{4}}){{3}}(?![\w:]))",  # as sysfs writes it
        rf"(?<![\w:.])(?:{_HEX}{{1,4}}:)+(?::{_HEX}{{1,4}})+(?![\w:])",  # IPv6 with its zeros left out
        # BOOTIF=01-0c-42-..: PXE puts the hardware type before the address
        rf"\b(?P<type>01[:-])(?P<typed>{_MAC})(?![:-]?\w)|(?P<mac>(?<!\b{_HEX}{{2}}[:-])\b{_MAC}(?![:-]?\w))",
        r"\b(?:\d{1,3}\.){3}\d{1,3}\b(?!\.\d)",
        MADE_OF_ADDRESS,
    )
)
_IN_TEXT = f"{_FORMED}|{_BARE}"
_IDENTITY = LazyPattern(_IN_TEXT, flags=re.MULTILINE)
_ALONE, _BEHIND = r"(?<![\w:.-])", r"(?![\w:.-])"
OF_PERSON = "(?!(?:buildd|mockbuild|debian-kernel|geeko|abuild)@)"
"""Before NAME@HOST: those of distributions stay."""
_MAIL = rf"(?<![\w.-]){OF_PERSON}[A-Za-z][\w.-]{{0,31}}@[\w.-]{{1,253}}"
_NUMBERED = r"(?i:\b(?:serial(?:[ _]?(?:number|no\.?))?|s/n|asset tag) ?[:=] ?)(?P<numbered>[^\s,]+)"
_UNMISTAKABLE = (
    rf"(?:(?:{_ALONE}|(?<=GPU-)|(?<=MIG-))(?P<uuid>{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}})"
    rf"|{_ALONE}(?:{_HEX}{{4}}(?::{_HEX}{{4}}){{7}}|(?:{_HEX}{{2}}[:-]){{7}}{_HEX}{{2}}"
    rf"|(?P<guid>{_HEX}{{4}}(?::{_HEX}{{4}}){{3}})|(?P<mac>{_MAC})|{_HEX}{{32}})){_BEHIND}"
)
"""Forms that no version has, no bus id, no address of a BAR and no mask of CPUs."""
_TELLING_HOST = re.compile(
    r"(?!(?:pci[\da-f]{4}|(?:[abhlpv]|g[bh])\d{2,3}s?)\Z)(?=.*[a-z])(?=.*\d)[\w-]{4,63}", re.IGNORECASE
)
"""A name that no product has for a word of its own, as GPUs have (GH200)."""
_REGISTERS = LazyPattern(r"(?:mce: )?(?:\{\d{1,10}\})?\[Hardware Error\]: |mce: |EDAC |Memory failure: ")
"""Lines of machine checks: their numbers of 16 digits are registers, and PPIN is the serial number of a CPU."""
_PPIN = LazyPattern(r"(?P<before>\bPPIN:? (?:0x)?)(?P<number>[0-9a-fA-F]{1,16})\b")
_BEFORE = (("serial", "number"), ("type", "typed"), ("made", "address"))
_IN_KERNEL_LOG = LazyPattern(
    r"(?P<number>(?i:\bserial(?:[ _]?(?:number|no\.?))?|\bs/n|\basset tag)(?: ?(?:is |[:=]) ?| (?=[A-Z]*\d[A-Z\d]{5})))"
    r"(?P<serial>[^\s,]+)"
    r"|(?P<mac>(?<![\w:-])(?=[0-9]{0,11}[a-fA-F])(?=[a-fA-F]{0,11}[0-9])[0-9a-fA-F]{12}(?![\w:-]))"
    r"|(?P<home>/home/)(?P<owner>[^\s/'\",;]{1,32})|(?P<who>\b[Uu]ser(?:name)?(?:=| ?'))(?P<user>[\w.-]{1,32})"
    r"|(?P<file>(?<=[\s\"'])/(?!(?:home|sys|dev|proc|usr|lib|lib64|boot|bin|sbin|run|etc)/)[\w.+-]+(?:/[\w.+-]+)+)"
    r"|(?P<address>(?<![\w.-])[A-Za-z][\w.-]{0,31}@[\w.-]{1,253})"
    r"|(?P<named>name=|(?i:client|process|comm) ')(?P<process>(?!<unknown>)[^,']+)"
    # kernel/hung_task.c, kernel/watchdog.c, mm/memory-failure.c: the name is cut after 15 characters
    r"|(?P<at>Lockdown: |traps: |^)"
    r"(?P<by>.{1,16}?)(?=: (?:attempt to access beyond|unsigned module)|\[\d{1,10}\](?:: segfault at | \w))"
    r"|(?P<comm>\bcomm )(?P<program>.{1,16}?)(?=: )"
    r"|(?P<to>nfs: server )(?P<server>\S{1,255})"
    r"|(?P<kill>Kill(?:ed)? process \d{1,10},?(?: UID \d{1,10},)? \(|oom-kill:.{0,400}?,task=)(?P<victim>[^),]{1,16})"
    r"|(?P<before>INFO: task |stuck for \d{1,8}s! \[|SIGBUS to |Killing )(?P<task>.{1,16}?)(?=:\d{1,10}\b)"
)
_NAMED = (("named", "process", "process"), ("comm", "program", "process"), ("before", "task", "process"),
          ("at", "by", "process"), ("kill", "victim", "process"), ("home", "owner", "user"), ("who", "user", "user"),
          ("to", "server", "host"))  # fmt: skip
_WORD = re.compile(r"\S+")
_PLAIN_DESCRIPTION = LazyPattern(
    r"(?:HCA|hca|mlx[45]|mlx5_bond|hfi1|qib|bnxt_re|irdma|port)?[-_]?\d{1,3}|(?:MT|ConnectX|BlueField)[-_\w]{0,12}"
    r"|MT\d{4}|Mellanox|Technologies|NVIDIA|Infiniscale\S{0,4}|Quantum"
)
_DOMAIN = re.compile(r"(?=.*[A-Za-z])[\w.-]{3,253}")
_PEER = r"(?<![\w.-])(?P<peer>(?=[\w.-]{0,63}[A-Za-z])[\w-]{1,63}(?:\.[\w-]{1,63}){0,8})(?=<\d{1,5}>|<(?:\d{1,3}\.){3})"
"""NCCL writes the other end of a connection as ``node17<48123>``, or with its address."""
_LEAST_NAME = 4


class FreeText:
    """One machine's: its host names and their domains, and the names of programs and users that are known of it."""

    def __init__(self, pseudonyms: Pseudonyms, hosts: Sequence[str], programs: Iterable[str] = ()) -> None:
        self._pseudonyms = pseudonyms
        self._known: dict[str, str] = {}
        self._clean: dict[str, str] = {}
        self._hosts = {host.partition(".")[0].lower(): host for host in reversed(hosts)}
        short = "|".join(re.escape(name) for name in self._hosts if len(name) > 1 and not is_word(name)) or "(?!)"
        domains = {host.partition(".")[2] for host in hosts}
        same = filter(_DOMAIN.fullmatch, sorted(domains))
        domain = "|".join(map(re.escape, same)) or "(?!)"
        neighbour = rf"[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{0,8}}\.(?:{domain})"
        named = rf"(?i:\b(?P<host>{short})(?:\.[\w.-]+)?\b|\b(?P<neighbour>{neighbour})\b)|{_PEER}"
        telling = "|".join(re.escape(name) for name in self._hosts if _TELLING_HOST.fullmatch(name)) or "(?!)"
        sure = rf"(?i:\b(?P<host>{telling})(?:\.[\w.-]+)?\b|\b(?P<neighbour>{neighbour})\b)"
        self._in_fact = re.compile(rf"{sure}|(?P<mail>{_MAIL})|{_NUMBERED}|{_UNMISTAKABLE}")
        self._with_host = LazyPattern(f"{named}|{_IN_TEXT}", flags=re.MULTILINE)
        self._in_registers = LazyPattern(f"{named}|{_FORMED}", flags=re.MULTILINE)
        names = {name for program in programs for name in _telling(program)}
        programs_named = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
        self._program = re.compile(rf"(?<![\w-])(?:{programs_named})(?![\w-])")

    def host_name(self, host: str) -> str:
        """``host-1a2b3c4d``."""
        return self._pseudonyms.named("host", host)

    def without_host(self, text: str) -> str:
        """Text that names no host; the same few come a thousand times."""
        if text not in self._known:
            self._known[text] = _IDENTITY.sub(self._match, text)
        return self._known[text]

    def formed(self, text: str) -> str:
        """Text that should hold no identity: what can be nothing else is replaced."""
        if text not in self._clean:
            self._clean[text] = text if len(text) < _LEAST_NAME else self._in_fact.sub(self._match, text)
        return self._clean[text]

    def text(self, text: str) -> str:
        """Text that may name the host, and other hosts of its domain."""
        return self._with_host.sub(self._match, text)

    def kernel_message(self, text: str) -> str:
        """Serial numbers, processes and users by what stands before them, the rest as any free text."""

        def replaced(match: re.Match[str]) -> str:
            if match["serial"]:
                return match["number"] + self._pseudonyms.identity(match["serial"], known=True)
            if match["mac"]:
                return self._pseudonyms.identity(match["mac"], known=True)
            if match["address"] or match["file"]:
                return "hidden"
            before, name, kind = next(named for named in _NAMED if match[named[1]])
            return f"{match[before]}{self._pseudonyms.named(kind, match[name])}"

        text = _IN_KERNEL_LOG.sub(replaced, self._registers(text) or self.text(text))
        return self._program.sub(lambda match: self._pseudonyms.named("process", match[0]), text)

    def _registers(self, text: str) -> str | None:
        """A line of a machine check; None for any other."""
        if _REGISTERS.match(text) is None:
            return None
        kept = _PPIN.sub(lambda match: match["before"] + self._pseudonyms.identity(match["number"], known=True), text)
        return self._in_registers.sub(self._match, kept)

    def description(self, text: str) -> str:
        """``node_desc``: names of adapters and pseudonyms stay; an admin may have written anything else there."""

        def word(match: re.Match[str]) -> str:
            if _PLAIN_DESCRIPTION.fullmatch(match[0]):
                return match[0]
            return self._match(found) if (found := self._with_host.fullmatch(match[0])) else "hidden"

        return _WORD.sub(word, text)

    def _match(self, match: re.Match[str]) -> str:
        parts = match.groupdict()
        if parts.get("mail"):
            return "hidden"
        if number := parts.get("numbered"):
            return f"{match[0][: -len(number)]}{self._pseudonyms.identity(number, known=True)}"
        if parts.get("host"):
            return self.host_name(self._hosts[parts["host"].lower()])
        if parts.get("neighbour") or parts.get("peer"):
            return self.host_name(match[0])
        for before, after in _BEFORE:
            if parts.get(before):
                return f"{parts[before]}{self._pseudonyms.identity(parts[after], known=True)}"
        return self._pseudonyms.identity(match[0], known=any(map(parts.get, ("uuid", "guid", "mac"))))


def users_of(text: str) -> set[str]:
    """``/home/NAME/-`` for every user that a text names so, or as ``NAME@HOST``."""
    found = (match["owner"] or match["user"] or (match["address"] or "").partition("@")[0]
             for match in _IN_KERNEL_LOG.finditer(text))  # fmt: skip
    return {f"/home/{name}/-" for name in found if name}


def _telling(program: str) -> list[str]:
    """Of ``/home/alice/bin/train``: ``train`` and ``alice``, unless the driver may say such a word itself."""
    parts = program.split("/")
    owner = parts[2:3] if parts[1:2] == ["home"] and len(parts) > 3 else []
    names = (name.strip() for name in (parts[-1].partition(" ")[0], *owner))
    return [name for name in names if len(name) >= _LEAST_NAME and not is_word(name)]
