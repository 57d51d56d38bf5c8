"""What tools of disks and arrays say: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from readers_text import assert_read

DISK = '{"critical_warning": 4, "avail_spare": 2, "media_errors": 218}\n'
CONTROL = '{"device": {"name": "/dev/sda"}, "smart_status": {"passed": false}}\n'
ARRAYS = """\
Personalities : [raid1]
md0 : active raid1 nvme0n1p2[0](F) nvme1n1p2[1]
      937560384 blocks super 1.2 [2/1] [_U]

md1 : active raid1 nvme2n1p2[0] nvme3n1p2[1]
      937560384 blocks super 1.2 [2/2] [UU]

unused devices: <none>
"""
CONTAINERS = """\
Personalities : [raid1]
md126 : active raid1 nvme1n1[1] nvme0n1[0]
      890806272 blocks super external:/md127/0 [2/2] [UU]

md127 : inactive nvme1n1[1](S) nvme0n1[0](S)
      10402 blocks super external:imsm
"""
"""Of Intel VROC."""
INACTIVE = "md0 : inactive nvme1n1[1](S)\n      937560384 blocks super 1.2\n"
GOOD_DISK = '{"critical_warning": {"value": 0, "available_spare": 0}, "media_errors": 0}\n'
WARNS = GOOD_DISK.replace('"value": 0', '"value": 4')
UNTOLD = '{"device": {"name": "/dev/sda"}, "smart_status": {}}\n'
SAS = """\
=== START OF READ SMART DATA SECTION ===
SMART Health Status: OK
Elements in grown defect list: 0

Error counter log:
           Errors Corrected by           Total   Correction     Gigabytes    Total
               ECC          rereads/    errors   algorithm      processed    uncorrected
           fast | delayed   rewrites  corrected  invocations   [10^9 bytes]  errors
read:   1492558298        0         0  1492558298          0       9653,059          {}
write:         0        0         1         1          1       4144.460           0
verify: 2501279159        0         0  2501279159          0      14578.622           0

Non-medium error count:        6
"""
SELF_TESTS = """\
=== START OF READ SMART DATA SECTION ===
SMART overall-health self-assessment test result: PASSED

SMART Self-test log structure revision number 1
Num  Test_Description    Status                  Remaining  LifeTime(hours)  LBA_of_first_error
# 1  Extended offline    Completed{}       90%     12345         123456789
# 2  Short offline       Completed: read failure       90%     12000         123456789
"""
POOL = """\
  pool: data
 state: {0}
status: One or more devices are faulted in response to persistent errors.
\tSufficient replicas exist for the pool to continue functioning in a
\tdegraded state.
action: Replace the faulted device.
  scan: scrub repaired 0B in 02:13:11 with 0 errors on Sun Nov 10 02:37:12 2024
config:

\tNAME                        STATE     READ WRITE CKSUM
\tdata                        {0:10}    0     0     0
\t  raidz2-0                  {0:10}    0     0     0
\t    nvme-eui.0025385b0140   ONLINE       0     0     0
\t    nvme3n1                 {1:10}   12    87     0  {2}
\tspares
\t  nvme9n1                   AVAIL

errors: No known data errors
"""
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "nvme -o json": (DISK, ("warn disk inspect",)),
    "smartctl -j": (CONTROL, ("warn disk inspect",)),
    "/proc/mdstat": (ARRAYS, ("warn disk inspect",)),
    "containers of arrays": (CONTAINERS, ()),
    "an array that is not assembled": (INACTIVE, ("warn disk inspect",)),
    "nvme -o json -v, good": (GOOD_DISK, ()),
    "nvme -o json -v": (WARNS, ("warn disk inspect",)),
    "smartctl -j, good": (CONTROL.replace("false", "true"), ()),
    "smartctl -j without a result": (UNTOLD, ()),
    "smartctl of a SAS disk": (SAS.format(0), ()),
    "smartctl of a SAS disk that could not read": (SAS.format(12), ()),
    "a self-test that failed": (SELF_TESTS.format(": read failure"), ("warn disk inspect",)),
    "a self-test that failed before": (SELF_TESTS.format(" without error"), ()),
    "a self-test of a SAS disk that failed": (
        "SMART Self-test log\n# 1  Background long   Failed in segment -->   -   12345   1234567 [0x3 0x11 0x0]\n",
        ("warn disk inspect",)),
    "zpool status": (POOL.format("DEGRADED", "FAULTED", "too many errors"), ("warn disk inspect",)),
    "zpool status of a pool that is gone": (POOL.format("SUSPENDED", "REMOVED", ""), ("fail array-failed inspect",)),
    "zpool status, good": (POOL.format("ONLINE", "ONLINE", ""), ()),
    "zpool status, files lost": (POOL.format("ONLINE", "ONLINE", "").replace(
        "No known data errors", "Permanent errors have been detected in the following files:"),
        ("warn disk inspect",)),
    "a self-test of a disk by its name": (
        f"# smartctl -a /dev/sda\n{SELF_TESTS.format(': read failure')}", ("warn disk inspect",)),
    "zpool status -x": ("all pools are healthy\n", ()),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


def test_what_a_sas_disk_could_not_read_is_a_note(tmp_path: Path) -> None:
    _, found = of_text(SAS.format(12), tmp_path)
    assert "SMART: a disk: 12 media errors" in [each["message"] for each in found["findings"]]
