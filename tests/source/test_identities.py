"""Identities in odd places: bytes of a configuration space, the kernel's log, who built it, where it came from."""

from __future__ import annotations

import json
import re

import pytest
from sample import swept

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.config_space import publishable
from dgxcheck.source.recording.keys import flatten, from_rows, insert, to_rows
from dgxcheck.source.recording.load import open_source, shipped
from dgxcheck.source.recording.replay import RecordedSource
from probes.pci.config_space import acs, express

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
     ("mlx5_core 0000:05:00.0: mac 0c42a15e7709 up", "0c42a15e7709"),
     ("INFO: task acme train:4711 blocked for more than 120 seconds.", "acme"),
     ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [acme:job:4711]", "acme"),
     ("Memory failure: 0x1234: Sending SIGBUS to acme:4711 due to hardware memory corruption", "acme"),
     ("Memory failure: 0x1234: Killing acme:4711 due to hardware memory corruption", "acme"),
     ("Out of memory: Killed process 4711 (acme train) total-vm:1kB", "acme"),
     ("traps: acme: train[12] trap invalid opcode ip:1 sp:2 error:0 in libcuda.so[400000+1000]", "acme"),
     ("acme train[12]: segfault at 0 ip 0000000000401136 sp 00007ffd error 6 in libcuda.so[400000+1000]", "acme"),
     ("EXT4-fs error (device sda1): ext4_lookup:1234: inode #2: comm acme: deleted inode referenced: 1", "acme"),
     ("nvidia-fs: failed to open /scratch/ann/acme.h5 on it", "acme"),
     ("NVRM: loading '/data/acme/fw.bin' failed", "acme"), ("nvidia 0000:05:00.0: asset tag A0451877", "A0451877"),
     ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,task=acme,pid=4711,uid=0", "acme")],
)  # fmt: skip
def test_of_the_kernel_log(message: str, identity: str) -> None:
    assert identity not in json.dumps(replaced({"kmsg 1": f"1.000000;{message}"}))


def test_registers_of_a_machine_check_stay_and_the_number_of_the_cpu_leaves() -> None:
    lines: dict[str, Json] = {
        "kmsg 1": "1.5;mce: [Hardware Error]: CPU 30: Machine Check Exception: 5 Bank 1: bd80000000100134",
        "kmsg 2": "1.6;mce: [Hardware Error]: TSC 6bd4e2ff33b8a ADDR 1234567890abcdef MISC 86 PPIN 2a87fc8d7e2b1c03",
        "kmsg 3": "1.7;{3}[Hardware Error]:   physical_address: 0x0000001234567000",
    }
    found = replaced(lines)
    assert (found["kmsg 1"], found["kmsg 3"]) == (lines["kmsg 1"], lines["kmsg 3"])
    assert str(found["kmsg 2"]).startswith("1.6;mce: [Hardware Error]: TSC 6bd4e2ff33b8a ADDR 1234567890abcdef MISC 86")
    assert "2a87fc8d7e2b1c03" not in str(found["kmsg 2"])


@pytest.mark.parametrize(
    ("key", "text", "due"),
    [("text /proc/version", "Linux version 6.1 (ann@build.example) (gcc) #1", "Linux version 6.1 (hidden) (gcc) #1"),
     ("text /proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  580.95.05  Release Build  (root@node7)  \nGCC",
      "NVRM version: NVIDIA UNIX  580.95.05  Release Build  (hidden)  \nGCC"),
     ("kmsg 1", "1.5;NVRM: loading NVIDIA UNIX Module  580.95.05  Debug Build  (ann@)  ",
      "1.5;NVRM: loading NVIDIA UNIX Module  580.95.05  Debug Build  (hidden)  "),
     ("text /proc/cmdline", "BOOT_IMAGE=(http,boot.example)/rack7/vmlinuz-5.4.0-42-generic ro",
      "BOOT_IMAGE=vmlinuz-5.4.0-42-generic ro"),
     ("text /proc/cmdline", "BOOT_IMAGE=(hd0,gpt2)/boot/vmlinuz-5.4 ro", "BOOT_IMAGE=(hd0,gpt2)/boot/vmlinuz-5.4 ro"),
     ("text /proc/cmdline", "BOOT_IMAGE=/images/rack7 ro", "BOOT_IMAGE=hidden ro")],
)  # fmt: skip
def test_of_builder_and_boot_image(key: str, text: str, due: str) -> None:
    assert replaced({key: text})[key] == due


def test_of_the_processes_beside_a_scheduler_it_alone_keeps_its_name() -> None:
    scheduler, job = replaced({"text /proc/41/comm": "slurmd\n", "text /proc/42/comm": "acme_model\n"}).values()
    assert (scheduler, "acme" in str(job)) == ("slurmd\n", False)


@pytest.mark.parametrize(
    ("serial", "elsewhere"),
    [("1", "link 1 of 11"), ("00000001", "0x00000001"), ("1410", "1410 MHz"),
     ("To Be Filled By O.E.M.", "To Be Filled"), ("None", "None"), ("20000000", "20000000 of 120000000")],
)  # fmt: skip
def test_a_serial_number_that_may_be_anything_else_changes_no_other_fact(serial: str, elsewhere: str) -> None:
    others: dict[str, Json] = {"text /sys/class/dmi/id/bios_version": elsewhere, "nvml nvmlDeviceGetBrand x:": 1410}
    found = replaced({"text /sys/class/dmi/id/product_serial": serial, **others})
    assert {key: found[key] for key in others} == others


def test_a_pseudonym_is_the_same_in_every_spelling() -> None:
    address, board = "text /sys/class/net/eth0/address", "text /sys/class/dmi/id/board_name"
    found = replaced({address: "0c:42:a1:5e:77:09", board: "0C42.A15E.7709 0c42a15e7709 x0C42A1-5E7709"})
    new = str(found[address]).replace(":", "")
    upper = new.upper()
    assert found[board] == f"{upper[:4]}.{upper[4:8]}.{upper[8:]} {new} x{upper[:6]}-{upper[6:]}"


CHANGED = re.compile(
    r"data .*/(config|vpd)|nvml nvmlDeviceGet(Serial|UUID|GpuFabricInfo\w*) .*|text /etc/dgx-release|kmsg \d+"
    r"|text /proc/(cmdline|version)|text /proc/sys/kernel/(hostname|random/boot_id)"
    r"|text /sys/class/dmi/id/\w*serial|text /etc/.*\.conf"
    r"|text /sys/class/(infiniband/\w+/(node_desc|node_guid|sys_image_guid)|net/\w+/address)"
)


@pytest.mark.parametrize("name", swept([name for name, _ in shipped()][::3], 16))
def test_no_other_fact_of_a_box_changes(name: str) -> None:
    source = open_source(name)
    assert isinstance(source, RecordedSource)
    before, after = flatten(source.lines), flatten(anonymized(source.lines, [], b"key")[0])
    assert before.keys() == after.keys()
    assert [key for key, fact in before.items() if fact != after[key] and not CHANGED.fullmatch(key)] == []


def test_files_of_configuration_keep_their_order() -> None:
    folder = "/etc/security/limits.d"
    line = "* hard memlock "
    facts: dict[str, Json] = {f"names {folder}": ["10-orion.conf", "1a.conf", "README.acme"]}
    facts |= {f"text {folder}/{name}": f"{line}{number}" for number, name in enumerate(["10-orion.conf", "1a.conf"])}
    assert replaced(facts) == {
        f"names {folder}": ["000.conf", "001.conf", "002"],
        f"text {folder}/000.conf": f"{line}0", f"text {folder}/001.conf": f"{line}1",
    }  # fmt: skip


NAMES = ["lo", "eth0", "ib3", "enp226s0f1np1", "ens1f0", "eno1", "ibp12s0", "bond0.100", "docker0", "mlx5_bond_0"]


def test_names_that_the_system_gives_stay_and_others_leave() -> None:
    chosen = ["acme", "acme.100", "rack7-eth0", "eth0-acme"]
    found = replaced({"names /sys/class/net": [*NAMES, *chosen], "kmsg 1": "1.5;mlx5_core 0000:05:00.0 acme.100: up"})
    names = found["names /sys/class/net"]
    assert isinstance(names, list)
    assert {*NAMES} < {*map(str, names)}
    assert "acme" not in repr(found)
    vlan = next(str(name) for name in names if str(name).endswith(".100") and name != "bond0.100")
    assert vlan.removesuffix(".100") in names
    assert found["kmsg 1"] == f"1.5;mlx5_core 0000:05:00.0 {vlan}: up"


def test_a_kind_of_fact_that_is_not_known_does_not_leave() -> None:
    lines: dict[str, dict[str, Json]] = {"nvmo nvmlDeviceGetUUID x:": {"": "GPU-x"}, "kmsg": {"0": "1.5;NVRM: x"}}
    assert anonymized(lines, [(60.0, lines)], b"key") == ({"kmsg": lines["kmsg"]}, [(60.0, {"kmsg": lines["kmsg"]})])


PLANTED = {
    "mac": "0c:42:a1:5e:77:09", "guid": "0c42:a103:005e:7709", "uuid": "GPU-5b3ae7f2-11c8-e0ab-93d1-6c0f21aa97e4",
    "host": "orion17", "its domain": "orion17.lab.example", "neighbour": "vega.lab.example",
    "mail": "ann@build.example", "serial": "PK8A-4471",
}  # fmt: skip
WORDS = " ".join(PLANTED.values()).replace("PK8A", "S/N: PK8A")
OWN: dict[str, Json] = {"text /proc/sys/kernel/hostname": "orion17.lab.example\n"}
ODD: dict[str, Json] = {
    "text /sys/class/dmi/id/board_name": "x", "text /sys/class/dmi/id/chassis_asset_tag": "x", "kmsg 5": "5.0;NVRM: x",
    "text /proc/cmdline": 'ro nvidia.NVreg_RegistryDwords="RmX=1;',
    "measure latency 0000:06:00.0 0000:07:00.0": {"value": 1.0, "unit": "us", "how": "imported", "detail": "x"},
    "nvml nvmlDeviceGetBrand 0000:06:00.0": {"missing": "garbled", "detail": "x"}, "stated gpu-note 0": "x",
}  # fmt: skip


@pytest.mark.in_ci
def test_an_identity_planted_in_any_fact_leaves() -> None:
    """Alone and behind what a fact of each kind holds, in its members, its names and the details of gaps."""
    kinds: dict[tuple[str, bool], tuple[str, Json]] = {}
    seen: set[tuple[str, bool]] = set()
    for name, _ in shipped()[::6]:
        source = open_source(name)
        assert isinstance(source, RecordedSource)
        for key, fact in flatten(source.lines).items():
            gap = isinstance(fact, dict) and "missing" in fact
            if (key, gap) not in seen:
                seen.add((key, gap))
                kind = re.sub(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|\d+", "#", key)
                kinds.setdefault((kind, gap), (key, fact))
    left = []
    for key, fact in [*kinds.values(), *ODD.items()]:
        for planted in with_identities(fact):
            leaves = json.dumps(replaced(OWN | {key: planted}))
            left += [(key, kind) for kind, identity in PLANTED.items() if identity in leaves]
    assert left == []


@pytest.mark.parametrize(
    "key", [key for key, fact in ODD.items() if isinstance(fact, dict) or key.startswith(("kmsg", "stated"))]
)
def test_what_a_tool_says_holds_no_address_and_no_home(key: str) -> None:
    said = "connection to 10.37.4.19 and fd00:37:0:a::a19 refused; see /home/mallory/train.log"
    fact = ODD[key]
    leaves = json.dumps(replaced({key: fact | {"detail": said} if isinstance(fact, dict) else f"5.0;NVRM: {said}"}))
    assert [one for one in ("10.37.4.19", "fd00:37:0:a::a19", "mallory") if one in leaves] == []
    assert "refused" in leaves


def with_identities(fact: Json) -> list[Json]:
    if isinstance(fact, str):
        return [f"{fact.rstrip()} {WORDS}", WORDS]
    if isinstance(fact, list):
        return [[*fact[:-1], new] for new in with_identities(fact[-1])] if fact else []
    if isinstance(fact, dict) and "rows" not in fact:
        return [fact | {name: new} for name, member in fact.items() if name not in ("missing", "how", "unit")
                for new in with_identities(member)]  # fmt: skip
    return []
