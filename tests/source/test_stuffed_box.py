"""A box stuffed with identities, recorded: none of them is left, in no spelling, as text, number or bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sample import swept
from seam import HEAD, run, save

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import GroupedFacts, flatten, from_rows, insert, to_rows
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource

NET, IB, PCI = "/sys/class/net", "/sys/class/infiniband", "/sys/bus/pci/devices"
ETHERNET, HCA, GPU = "0000:e2:00.0", "0000:cc:00.0", "0000:bd:00.0"


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices("0123456789abcdef", k=count))


def _by(text: str, size: int, separator: str) -> str:
    return separator.join(text[at : at + size] for at in range(0, len(text), size))


class Identities:
    """Of one box, from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed, rng = seed, random.Random(seed)
        self.mac, self.guid = _digits(rng, 12), _digits(rng, 16)
        self.made_of_guid = self.guid[:6] + self.guid[10:]
        self.uuids = [_digits(rng, 32) for _ in range(3)]
        self.serials = [f"03{rng.randrange(10**11):011d}", f"QTFCOU{rng.randrange(10**7):07d}"]
        self.host, self.domain = f"rack{rng.randrange(10, 99)}-node{rng.randrange(10, 99)}", "acme-labs.example"
        self.storage, self.adapter, self.array = "acme-storage", "hca_acme_1", "md_acmedata"
        self.user, self.program, self.limits = "mallory", "sesame-train", "10-project-orion.conf"

    @property
    def words(self) -> tuple[str, ...]:
        return (self.host, self.domain, self.storage, self.adapter, self.array, self.user, self.program, "orion")

    @property
    def binary(self) -> tuple[str, ...]:
        return (self.mac, self.guid, self.made_of_guid, *self.uuids)


def _uuid(text: str) -> str:
    return f"{text[:8]}-{_by(text[8:20], 4, '-')}-{text[20:]}"


def _spellings(text: str) -> Iterator[str]:
    """As an admin, a kernel or a firmware may write a MAC, GUID or UUID."""
    turned = bytes.fromhex(text)[::-1].hex()
    for plain in (text, text.upper(), turned):
        yield from (plain, f"0x{plain}", *(_by(plain, size, mark) for size in (2, 4) for mark in ":-._ "))
        yield str(int(plain, 16))


def stuffed(some: Identities) -> dict[str, Json]:
    """The facts of a DGX A100 with these identities where they belong, and wherever else they might turn up."""
    box = open_source("dgx-a100")
    assert isinstance(box, RecordedSource)
    facts = flatten(box.lines)
    everywhere = [spelling for text in some.binary for spelling in _spellings(text)] + some.serials
    whole = _by(some.guid, 4, ":")
    config = bytearray(4096)
    config[:4] = bytes.fromhex("b3151b10")
    config[0x2C:0x34], config[0x34], config[0x40:0x42] = bytes.fromhex(some.guid), 0x40, b"\x10\x00"
    config[0x42:0x48] = bytes.fromhex(some.mac)[::-1]
    config[0x48:0x58] = bytes.fromhex(some.uuids[0])
    names = facts[f"names {NET}"]
    assert isinstance(names, list)
    return facts | {
        f"names {NET}": [*names, some.storage, f"{some.storage}.100", f"enx{some.mac}"],
        f"text {NET}/{some.storage}/address": f"{_by(some.mac, 2, ':')}\n",
        f"text {NET}/{some.storage}/operstate": "up\n",
        f"link {NET}/{some.storage}/device": f"../../../{ETHERNET}",
        f"link {NET}/{some.storage}.100/master": f"../{some.storage}",
        f"text {NET}/{some.storage}/speed": {"missing": "denied", "detail": f"{NET}/{some.storage}: for {some.mac}"},
        f"names {IB}": [some.adapter],
        f"text {IB}/{some.adapter}/node_guid": f"{whole}\n",
        f"text {IB}/{some.adapter}/node_desc": f"{some.user}'s {some.host} mlx5_0 acme-labs.example {whole}\n",
        f"text {IB}/{some.adapter}/board_id": f"MT_{some.guid}\n",
        f"names {IB}/{some.adapter}/ports": ["1"],
        f"link {IB}/{some.adapter}/device": f"../../../{HCA}",
        "names /sys/class/block": [some.array, "sda"],
        f"text /sys/class/block/{some.array}/size": "1\n",
        f"data {PCI}/{HCA}/config": to_rows(bytes(config)),
        "text /sys/class/dmi/id/product_serial": f"{some.serials[1]}\n",
        "text /sys/class/dmi/id/product_name": f"DGXA100 {some.serials[1]} of {some.host}\n",
        "text /sys/class/dmi/id/board_name": f"board {some.serials[1].lower()}\n",
        "text /sys/class/dmi/id/bios_version": f"{_uuid(some.uuids[1])}\n",
        "text /proc/sys/kernel/hostname": f"{some.host}.{some.domain}\n",
        "text /proc/sys/kernel/random/boot_id": f"{_uuid(some.uuids[2])}\n",
        "text /proc/version": f"Linux version 6.1 ({some.user}@build.{some.domain}) (gcc) #1\n",
        "text /proc/cmdline": f"BOOT_IMAGE=/boot/{some.host}/vmlinuz-6.1 owner={some.user} console={some.mac} quiet\n",
        "names /etc/security/limits.d": [some.limits, "20-nproc.conf"],
        f"text /etc/security/limits.d/{some.limits}": f"{some.user} hard memlock 64\n# for orion\n",
        "text /etc/security/limits.d/20-nproc.conf": "* hard memlock unlimited\n",
        f"nvml nvmlDeviceGetUUID {GPU}": f"GPU-{_uuid(some.uuids[0])}",
        f"nvml nvmlDeviceGetSerial {GPU}": some.serials[0],
        f"nvml nvmlDeviceGetBoardPartNumber {GPU}": f"900-{some.serials[0]}-000",
        f"nvml nvmlDeviceGetBoardId {GPU}": int(some.serials[0]),
        f"nvml nvmlDeviceGetMinorNumber {GPU}": int(some.guid, 16),
        f"nvml nvmlDeviceGetPciInfo {GPU}": {"busId": GPU, "bus": int(some.mac, 16), "serial": some.serials[0]},
        f"nvml nvmlDeviceGetSupportedMemoryClocks {GPU}": [*bytes.fromhex(some.uuids[1])],
        f"nvml nvmlDeviceGetGpuFabricInfo {GPU}": {"clusterUuid": _uuid(some.uuids[1]), "state": 3},
        f"nvml nvmlDeviceGetComputeRunningProcesses {GPU}": [{"pid": 17, "usedGpuMemory": 1 << 30}],
        "nvml nvmlSystemGetProcessName 17": f"/home/{some.user}/bin/{some.program}",
        **{f"kmsg {number}": f"{number}.5;NVRM: GPU {GPU}: {text} of {some.host}.{some.domain} {some.storage}: up,"
           f" files.{some.domain} {some.user} {some.program}" for number, text in enumerate(everywhere, 100)},
        **{f"name pci 10de:{number:04x}": f"thing {text}" for number, text in enumerate(everywhere)},
        f"text {PCI}/{GPU}/label": " ".join(everywhere),
    }  # fmt: skip


def _leaves(value: Json) -> Iterator[str | int | bytes]:
    if isinstance(value, dict):
        if (data := from_rows(value)) is not None:
            yield data
        for name, inner in value.items():
            yield name
            yield from _leaves(inner)
    elif isinstance(value, list):
        if value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
            yield bytes(one for one in value if isinstance(one, int))
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str | int):
        yield value


_MARKS = str.maketrans("", "", "-:._ ")
Held = list[tuple[str, str, str, bytes]]
"""What stands in a file: the text, the same in small letters, without punctuation, and the bytes of data."""


def held(document: Json) -> Held:
    found: Held = []
    for leaf in dict.fromkeys(_leaves(document)):
        text = leaf.decode("latin-1") if isinstance(leaf, bytes) else str(leaf)
        small = text.lower()
        found.append((text, small, small.translate(_MARKS), leaf if isinstance(leaf, bytes) else b""))
    return found


def left(some: Identities, document: Json) -> list[str]:
    """Every identity that a file still holds, with where it stands."""
    return left_in(some, held(document))


def left_in(some: Identities, texts: Held) -> list[str]:
    found = []
    serials = [(serial, serial.lower().lstrip("0")) for serial in some.serials]
    binary = [(one, bytes.fromhex(one)) for one in some.binary]
    numbers = [
        (one, {one, octets[::-1].hex(), str(int(one, 16)), str(int.from_bytes(octets, "little"))})
        for one, octets in binary
    ]
    for text, small, bare, data in texts:
        known = [word for word in some.words if word in small]
        known += [serial for serial, digits in serials if digits in bare]
        known += [one for one, spelled in numbers for word in spelled if word in bare]
        if data:
            known += [one for one, octets in binary for some_bytes in (octets, octets[::-1]) if some_bytes in data]
        found += [f"{one} in {text[:200]!r}" for one in known]
    return found


def lines_of(facts: dict[str, Json]) -> GroupedFacts:
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return lines


@pytest.mark.in_ci
@pytest.mark.parametrize("seed", swept(range(4), 4))
def test_no_identity_is_left_in_a_recording(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = Identities(seed)
    lines = lines_of(stuffed(some))
    later = [(60.0, {line: group for line, group in lines.items() if line.startswith((NET, IB, "kmsg", "nvml"))})]
    box = save(tmp_path / "box.json", lines, later, head={**HEAD, "identities": "kept"})
    kept, gone = tmp_path / "kept.json", tmp_path / "gone.json"
    assert run(capsys, "record", str(kept), "--from", str(box), "--keep-identity").code == 0
    assert run(capsys, "record", str(gone), "--from", str(box)).code == 0
    names = {*some.words, *some.serials, *some.binary}
    assert {one.partition(" in ")[0] for one in left(some, json.loads(kept.read_text()))} == names, "the test is blind"
    assert left(some, json.loads(gone.read_text())) == []
    text, onto = tmp_path / "text", tmp_path / "onto.json"
    text.write_text(f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-{_uuid(some.uuids[0])})\n")
    assert run(capsys, "import", str(text), "--onto", str(kept), "-o", str(onto)).code == 0
    assert left(some, json.loads(onto.read_text())) == []
