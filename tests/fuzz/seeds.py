"""Small inputs of each kind to start from: what the other tests read, and what was found and kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from smi_texts import LINKS, QUERY, STATION, TABLE

from dgxcheck.profiles import library

CORPUS = Path(__file__).parent / "corpus"
BOX = {
    "schema": "dgxcheck/recording/1", "provenance": {"kind": "recorded"},
    "facts": {
        "/sys/bus/pci/devices": {"names": ["0000:06:00.0"], "link": {"0000:06:00.0": "../../../devices/pci0000:00/x"}},
        "/sys/bus/pci/devices/0000:06:00.0": {
            "text": {"class": "0x030200\n", "vendor": {"missing": "denied"}},
            "data": {"config": {"size": 256, "rows": {"000": "de10b11d06041000"}}},
        },
        "nvml nvmlDeviceGetUUID 0000:06:00.0": {"": "GPU-5b3ae7f2-11c8-e0ab-93d1-6c0f21aa97e4"},
        "kmsg": {"0": "1.5;NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."},
    },
    "later": [{"at_s": 60, "facts": {"nvml nvmlDeviceGetCount": {"": 1}}}],
}  # fmt: skip
LOG = b"""[    1.500000] NVRM: Xid (PCI:0000:06:00): 79, pid=17, GPU has fallen off the bus.
<4>[    2.000000] pcieport 0000:00:02.0: AER: Corrected error received: 0000:00:02.0
[    3.000000] mlx5_core 0000:05:00.0: Port module event[error]: module 0, Cable error, Power budget exceeded
"""
RESULT = {
    "schema": "dgxcheck/result/1", "host": "a", "generated_at": "2026-11-22T10:00:00Z", "level": "quick",
    "verdict": "fail", "score": 99.5, "profile": "dgx-1-v100", "gpus": {"Tesla V100": 8},
    "versions": {"driver": ["550.127.05"]}, "passed": {"ecc.dbe/GPU0": 1.5, "x": None}, "skipped": {"no": ["y"]},
    "found": [{"key": "xid/GPU0", "status": "fail", "fault": "xid", "message": "Xid 79", "subject": "GPU0",
               "action": "drain", "cause": "gpu GPU0", "measured": 8, "expected": 16, "unit": "lanes"}],
    "causes": [{"id": "gpu GPU0", "action": "reset"}],
    "nvlink_domains": ["3f2c1a9e-0000-0000-0000-000000000001.32766"],
}  # fmt: skip
COUNTERS = {
    "schema": "dgxcheck/recording/1", "facts": {"nvml nvmlDeviceGetPcieReplayCounter 0000:06:00.0": {"": 4}},
    "state": {"boot_id": "b", "driver": "550", "at_s": 12.5, "date": "2026-11-22T10:00:00Z",
              "xids": ["dgxcheck: earlier: boot b, begun 1.0, at 2026-11-22T09:00:00Z: NVRM: Xid (PCI:0000:06:00): 79"],
              "inventory": {"mark": {"GPU": [8, "2026-11-22"]}}},
}  # fmt: skip
WATCH = {
    "schema": "dgxcheck/watch-state/1", "boot_id": "b", "sequence": 7, "lost": 0, "verdict": "fail",
    "tallies": [["xid", "fail", "0000:06:00.0", "79", "Xid 79", 3, "2026-11-22T10:00:00Z",
                 "2026-11-22T10:00:00Z", "fail", 2, 1.5, 1]],
    "events": [{"at": "2026-11-22T10:00:00Z", "event": "xid", "status": "fail", "text": "Xid 79"}],
    "readings": {"width 0000:06:00.0": 16}, "uuids": {"0000:06:00.0": "GPU-a"},
    "findings": {"xid/GPU0": ["fail", "0000:06:00.0", "Xid 79"]},
}  # fmt: skip
ROWS_OF_FABRIC = b"""\
CA     7  1 0x0000000000100000 4x EDR - SW     7  1 0x0000000000200000 ( 'dgx000 mlx5_0' - 'leaf000' )
SW     7  1 0x0000000000200000 4x EDR - CA     7  1 0x0000000000100000 ( 'leaf000' - 'dgx000 mlx5_0' )
CA     7  1 0x0000000000100002 4x EDR - SW     7  2 0x0000000000200000 ( 'dgx000 mlx5_1' - 'leaf000' )
SW     7 17 0x0000000000200000 4x EDR - SW     7  1 0x0000000000200002 ( 'leaf000' - 'spine00' )
"""
LINKS_OF_FABRIC = b"""\
CA: gpu01 mlx5_0:
      0xb8599f0300e8dd3a     12    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       1   17[  ] "leaf01" ( )
Switch: 0xb8599f0300aaaaaa leaf01:
           1    1[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>      13    1[  ] "gpu02" ( Could be 53.125 Gbps)
           1    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
Errors for "gpu02 mlx5_0"
   GUID 0x1070fd0300370ea2 port 1: [LinkDownedCounter == 25 (25.000)] [PortRcvErrors == 26] [PortXmitWait == 1468]
"""
NET = b"""\
"MF0;pod1-leaf1:MQM9700/U1", Mellanox, 0xFC6A1C0300AA0001, LID 5
# : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : Neighbor Description
1/1/1 : 1 : ACT : LINK UP : 5 : 4x : 100 : MLNX_RS_271_257 : NO-RTR : 0xa088c20300000011 : 1 : 21 : "dgx001 mlx5_0"
1/1/2 : 2 : DOWN: POLLING : : : : : : : : : ""
"""
DB_CSV = b"""\
START_NODES
NodeDesc,NumPorts,NodeType,NodeGUID
"leaf1",65,2,0xa1
"dgx1 mlx5_0",1,1,0xb1
END_NODES
START_PORTS
NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkWidthSup,LinkSpeedActv,PortPhyState,PortState,LinkSpeedSup
0xa1,0xa1,1,0,2,19,2048,5,4,3841
0xb1,0xb2,1,21,1,19,2048,5,4,3841
END_PORTS
START_LINKS
NodeGuid1,PortNum1,NodeGuid2,PortNum2
0xb1,1,0xa1,1
END_LINKS
START_PM_INFO
NodeGUID,PortGUID,PortNumber,LinkDownedCounter,SymbolErrorCounterExt
0xa1,0xa1,1,9,0xfffe
END_PM_INFO
"""
LLDP = b'''{"lldp": {"interface": [{"ens1f0": {
"chassis": {"leaf1": {"id": {"type": "mac", "value": "0c:42:a1:00:00:01"}}},
"port": {"id": {"type": "ifname", "value": "swp1"}, "descr": "swp1"}}}]}}'''


def _on(day: int) -> dict[str, object]:
    """The result of a day: a fault that comes back every third, with a reboot every fourth."""
    found: dict[str, object] = {} if day % 3 == 0 else {"found": []}
    date = {"generated_at": f"2026-11-{day}T10:00:00Z", "boot_id": str(day // 4)}
    return {**RESULT, "source": {"kind": "live"}, **date, **found}


_OF_TARGET = {
    "recording": [json.dumps(BOX).encode(), b'{"schema": "dgxcheck/overlay/1", "base": "pcie-x4", "fault": "x"}'],
    "bug_report": [gzip.compress(b"nvidia-bug-report.log\n____\n*** /proc/cpuinfo\nprocessor : 0\n" + LOG)],
    "text": [text.encode() for text in (LINKS, QUERY, STATION, TABLE)],
    "kernel_log": [LOG, b"6,1,1500000,-;NVRM: Xid (PCI:0000:06:00): 79\n", b'{"MESSAGE":"NVRM: x","_BOOT_ID":"a"}\n'],
    "configuration": [b'[thresholds]\n"thermal.warn" = 80\n[severity]\n"ecc.mode" = "warn"\n'],
    "profile": [Path(library.__file__).with_name("k80-x8.toml").read_bytes()],
    "config_space": [bytes.fromhex("de10b11d") + bytes(48) + b"\x40" + bytes(11) + b"\x10\x00" + bytes(190)],
    "results": [json.dumps(RESULT).encode() + b"\n" + json.dumps(RESULT | {"host": "b"}).encode(),
                b'{"schema": "dgxcheck/health/2", "host": "a", "generated_at": "x", "level": "quick",'
                b' "verdict": "pass", "findings": [{"key": "k", "status": "pass", "measured": 1, "unit": "W"}],'
                b' "causes": [{"id": "host", "explains": ["k"], "action": {"action": "reboot"}}],'
                b' "score": {"total": 1}}'],
    "node_names": [b"dgx[001-016,020],login", b"a[1-3]b[2-4],c\n"],
    "counters": [json.dumps(COUNTERS).encode()],
    "watch_state": [json.dumps(WATCH).encode()],
    "watch_records": [b"6,1,1500000,-;NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.\n SUBSYSTEM=pci\n\n"
                      b"4,9,1500000,-;pcieport 0000:00:02.0: AER: Corrected error received: 0000:00:02.0"],
    "rank": [b"3\n0,2,1,GPU-5b3a", b"1\n"],
    "history": [b"\n".join(json.dumps(_on(day)).encode() for day in range(10, 22))],
    "fabric": [NET, LINKS_OF_FABRIC, ROWS_OF_FABRIC, DB_CSV, LLDP, b"host,adapter,switch,port\na,mlx5_0,leaf1,1\n"],
    "shown": ["GPU0 \x1b[31m \u202e Größe \ud7a3".encode()],
}  # fmt: skip


def seeds(name: str) -> list[bytes]:
    """Those of a target."""
    kept = sorted((CORPUS / name).glob("*")) if (CORPUS / name).is_dir() else []
    return [*_OF_TARGET[name], *(path.read_bytes() for path in kept)]
