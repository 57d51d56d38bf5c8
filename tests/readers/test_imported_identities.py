"""Reports and pasted texts stuffed with identities: none of them is in what ``import`` and ``record`` write."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from report_writer import LINE, report
from sample import swept
from seam import run
from test_stuffed_box import PCI, Identities, left, lines_of, stuffed

from dgxcheck.facts.missing import Json
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import flatten
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource

ADDRESSES = ("203.0.113.77", "2001:db8:77::5")
TAG = "ASSET0451877"
MORE = """\
{line}

/sbin/dmidecode

Handle 0x0001, DMI type 1, 27 bytes
System Information
\tManufacturer: NVIDIA
\tSerial Number: {serial}
\tUUID: {uuid}
\tAsset Tag: {tag}
{line}

/sbin/ip addr

2: {storage}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP
    link/ether {mac} brd ff:ff:ff:ff:ff:ff
    inet {ip}/24 scope global {storage}
    inet6 {ip6}/64 scope global
{line}

dmesg:

[  101.500000] NVRM: Xid (PCI:0000:bd:00): 79, pid=17, name={program}, GPU has fallen off the bus.
[  102.500000] NFS: server {host}.{domain} ({ip}) not responding, user {user}
[  103.500000] mlx5_core 0000:cc:00.0: Port module event: module 0, Cable {serial}
"""
PASTED = """\
{user}@{host}:~$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-{uuid})
{user}@{host}:~$ ibstat
CA 'mlx5_0'
\tCA type: MT4123
\tNumber of ports: 1
\tFirmware version: 20.43.1014
\tHardware version: 0
\tNode GUID: 0x{guid}
\tSystem image GUID: 0x{guid}
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 200
\t\tBase lid: 41
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0x2651e848
\t\tPort GUID: 0x{guid}
\t\tLink layer: InfiniBand
{user}@{host}:~$ dmesg -T | grep -i nvrm
[Mon Nov 23 10:00:00 2026] NVRM: Xid (PCI:0000:07:00): 79, pid=17, name={program}, GPU has fallen off the bus.
"""


def filled(text: str, some: Identities) -> str:
    uuid = some.uuids[0]
    return text.format(
        line=LINE, serial=some.serials[1], uuid=f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}",
        tag=TAG, storage=some.storage, mac=":".join(some.mac[at : at + 2] for at in range(0, 12, 2)), ip=ADDRESSES[0],
        ip6=ADDRESSES[1], program=some.program, host=some.host, domain=some.domain, user=some.user, guid=some.guid,
    )  # fmt: skip


def in_a_report(some: Identities) -> dict[str, Json]:
    """The stuffed box without what only other files of a machine, which no report has, show to be an identity."""
    box = open_source("dgx-a100")
    assert isinstance(box, RecordedSource)
    plain, odd = flatten(box.lines), ("kmsg ", "name pci", f"data {PCI}")
    kept = {key: fact for key, fact in stuffed(some).items() if not key.startswith(odd) and not key.endswith("/label")}
    whole = {key: fact for key, fact in plain.items() if key.startswith(odd)}
    return {**kept, **whole}


def found_in(path: Path, some: Identities) -> list[str]:
    text = path.read_text()
    return left(some, json.loads(text)) + [one for one in (*ADDRESSES, TAG) if one in text]


@pytest.mark.parametrize("command", ["import", "record"])
@pytest.mark.parametrize("seed", swept(range(2), 2))
def test_no_identity_of_a_report_is_written(
    seed: int, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = Identities(seed)
    machine = RecordedSource(lines_of(in_a_report(some)), Origin("recording"))
    file, out = tmp_path / f"{some.host}-nvidia-bug-report.log.gz", tmp_path / "out.json"
    file.write_bytes(report(machine) + gzip.compress(filled(MORE, some).encode()))
    argv = ("import", str(file), "-o", str(out)) if command == "import" else ("record", str(out), "--from", str(file))
    run(capsys, *argv)
    assert found_in(out, some) == []


@pytest.mark.parametrize("seed", range(2))
def test_no_identity_of_a_pasted_text_is_written(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = Identities(seed)
    file, out = tmp_path / f"{some.host}.txt", tmp_path / "out.json"
    file.write_text(filled(PASTED, some))
    run(capsys, "import", str(file), "-o", str(out))
    assert json.loads(out.read_text())["facts"]
    assert found_in(out, some) == []


ZPOOL = """\
  pool: orionpool
 state: DEGRADED
config:

\tNAME                        STATE     READ WRITE CKSUM
\torionpool                   DEGRADED     0     0     0
\t  mirror-0                  DEGRADED     0     0     0
\t    nvme3n1                 REMOVED      0     0     0
\t    nvme-SAMSUNG_MZQL_S64GNE0R123456  FAULTED     0     0     0
\t    12345678901234567890    UNAVAIL      0     0     0  was /dev/disk/by-id/ata-WD_WX41A2345678-part1
\t    wwn-0x5000c500a1b2c3d4  OFFLINE      0     0     0
"""
IMEX = """\
Node #0   * 203.0.113.77 *    - READY                - Version: 570.133.20
Node #1   - trayalpha17       - {}                - Version: 570.133.20

 Nodes From\\To  0   1
       0        C   D
       1        D   C
"""
SUSPENDED = "WARNING: Pool 'orionpool' has encountered an uncorrectable I/O failure and has been suspended."


@pytest.mark.parametrize(("text", "stays"), [
    (ZPOOL, "nvme3n1 is REMOVED"), (IMEX.format("READY"), "nodes not connected"), (IMEX.format("DOWN"), "not ready: 1"),
    (f"[  101.500000] {SUSPENDED}\n", "WARNING: Pool 'pool-"),
])  # fmt: skip
def test_no_name_of_a_pool_its_disks_and_nodes_is_written(
    text: str, stays: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(text)
    run(capsys, "record", str(tmp_path / "out.json"), "--from", str(tmp_path / "a.txt"))
    written = (tmp_path / "out.json").read_text()
    names = ("orionpool", "S64GNE0R123456", "12345678901234567890", "WX41A2345678", "5000c500a1b2c3d4", "trayalpha17")
    assert [name for name in (*names, *ADDRESSES) if name in written] == []
    assert stays in written
