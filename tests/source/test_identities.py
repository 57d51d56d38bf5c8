"""Identities in odd places: bytes of a configuration space, the kernel's log, who built it, where it came from."""

from __future__ import annotations

import json

import pytest

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.binary import from_rows, to_rows
from dgxcheck.source.recording.config_space import publishable
from dgxcheck.source.recording.keys import flatten, insert
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.shipped import open_source
from probes.pci.capabilities import acs, express

HCA = "/sys/bus/pci/devices/0000:05:00.0/config"
SERIAL = bytes.fromhex("0c42a103005e7709")


def replaced(facts: dict[str, Json]) -> dict[str, Json]:
    lines: dict[str, dict[str, Json]] = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return flatten(anonymized(lines, [], b"key")[0])


def test_the_device_serial_number_does_not_leave() -> None:
    config = bytearray(4096)
    config[:4] = bytes.fromhex("b3150310")
    config[0x100:0x104] = (0x0003 | 1 << 16 | 0x140 << 20).to_bytes(4, "little")
    config[0x104:0x10C] = SERIAL
    config[0x140:0x144] = (0x000D | 1 << 16).to_bytes(4, "little")
    config[0x144:0x148] = b"\x5f\x00\x1d\x00"
    config[0x800:0x808] = SERIAL[::-1]
    found = from_rows(replaced({f"data {HCA}": to_rows(bytes(config))})[f"data {HCA}"])
    assert found is not None
    assert SERIAL not in found
    assert SERIAL[::-1] not in found
    assert (found[:64], found[0x140:0x148]) == (bytes(config[:64]), bytes(config[0x140:0x148]))


def test_what_is_read_of_a_configuration_space_stays() -> None:
    read = 0
    for name in ("dgx-1-v100", "dgx-a100"):
        source = open_source(name)
        assert isinstance(source, RecordedSource)
        for key, fact in flatten(source.lines).items():
            config = from_rows(fact) if key.startswith("data ") else None
            if config is not None:
                read += 1
                kept = publishable(config)
                assert (express(kept, "x"), acs(kept, "x")) == (express(config, "x"), acs(config, "x"))
    assert read > 20


@pytest.mark.parametrize("config", [b"", b"\xff" * 3, b"\xff" * 64, b"\xff" * 256, b"\xff" * 4096, b"\x40" * 300])
def test_any_bytes_are_a_configuration_space(config: bytes) -> None:
    assert len(publishable(config)) == len(config)


@pytest.mark.parametrize(
    ("message", "identity"),
    [("mlx5_core 0000:05:00.0: peer 10.17.3.4.", "10.17.3.4"), ("NVRM: S/N: 0324018045123", "0324018045123"),
     ("NVRM: serial: PK8A-44", "PK8A-44"), ("NVRM: serial no. = PK8A-44", "PK8A-44"),
     ("mlx5_core 0000:05:00.0: mac 0c42a15e7709 up", "0c42a15e7709")],
)  # fmt: skip
def test_of_the_kernel_log(message: str, identity: str) -> None:
    assert identity not in json.dumps(replaced({"kmsg 1": f"1.000000;{message}"}))


@pytest.mark.parametrize(
    ("key", "text", "due"),
    [("text /proc/version", "Linux version 6.1 (ann@build.example) (gcc) #1", "Linux version 6.1 (hidden) (gcc) #1"),
     ("text /proc/cmdline", "BOOT_IMAGE=(http,boot.example)/rack7/vmlinuz-5.4.0-42-generic ro",
      "BOOT_IMAGE=vmlinuz-5.4.0-42-generic ro"),
     ("text /proc/cmdline", "BOOT_IMAGE=(hd0,gpt2)/boot/vmlinuz-5.4 ro", "BOOT_IMAGE=(hd0,gpt2)/boot/vmlinuz-5.4 ro"),
     ("text /proc/cmdline", "BOOT_IMAGE=/images/rack7 ro", "BOOT_IMAGE=hidden ro")],
)  # fmt: skip
def test_of_builder_and_boot_image(key: str, text: str, due: str) -> None:
    assert replaced({key: text})[key] == due
