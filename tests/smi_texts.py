"""Outputs of nvidia-smi as it would print them, small and made up, for the tests of their readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

STATION = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV1\tNV1\tNV2\tPIX\t0-7,16-23\t0\t\tN/A
GPU1\tNV1\t X \tNV2\tNV1\tSYS\t0-7,16-23\t0\t\tN/A
GPU2\tNV1\tNV2\t X \tNV1\tSYS\t8-15,24-31\t1\t\tN/A
GPU3\tNV2\tNV1\tNV1\t X \tSYS\t8-15,24-31\t0-1\t\tN/A
NIC0\tPIX\tSYS\tSYS\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = between nodes
  NV#  = # bonded NVLinks

NIC Legend:

  NIC0: mlx5_bond_0
"""
"""The graph of a DGX Station, with a NIC."""

QUERY = """\
==============NVSMI LOG==============

Timestamp                           : Thu Jan  1 00:00:00 2026
Driver Version                      : 550.1.2
CUDA Version                        : 12.4

Attached GPUs                       : 2
GPU 00000000:06:00.0
    Product Name                    : Example SXM2
    Persistence Mode                : Enabled
    Serial Number                   : 1234567890123
    GPU UUID                        : GPU-01234567-89ab-cdef-0123-456789abcdef
    PCI
        Bus Id                      : 00000000:06:00.0
        GPU Link Info
            PCIe Generation
                Max                 : 3
                Current             : 1
            Link Width
                Max                 : 16x
                Current             : 8x
    Clocks Throttle Reasons
        Idle                        : Active
        HW Slowdown                 : Not Active
            HW Thermal Slowdown     : Active
    FB Memory Usage
        Total                       : 16384 MiB
        Used                        : 3 MiB
    Ecc Mode
        Current                     : Enabled
        Pending                     : Disabled
    ECC Errors
        Volatile
            Double Bit
                Total               : 2
        Aggregate
            SRAM Uncorrectable      : 4
            DRAM Correctable        : 0
            DRAM Uncorrectable      : 3
    Retired Pages
        Double Bit ECC              : 2
    Temperature
        GPU Current Temp            : 41 C
    Power Readings
        Power Draw                  : 56.08 W
    Processes                       : None
GPU 00000000:07:00.0
    Product Name                    : Example SXM2
    Persistence Mode                : [GPU requires reset]
    Temperature
        GPU Current Temp            : ERR!
    Ecc Mode
        Current                     : N/A
        Pending                     : N/A
"""

TABLE = """\
Thu Jan  1 00:00:00 2026
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.1.2      Driver Version: 470.1.2      CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  Example SXM2-16GB   On   | 00000000:06:00.0 Off |                    0 |
| N/A   36C    P0    43W / 163W |      5MiB / 32510MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
|   1  Example SXM2-1...   Off  | 00000000:07:00.0 Off |                  Off |
| ERR!  ERR! ERR!   ERR! / ERR! |      0MiB / 32510MiB |    ERR!   E. Process |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
"""

LINKS = """\
GPU 0: Example (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)
\t Link 0: 25.781 GB/s
\t Link 1: <inactive>
GPU 1: Example (UUID: GPU-11234567-89ab-cdef-0123-456789abcdef)
NVML: Unable to retrieve Nvlink information as all links are inActive
GPU 2: Example (UUID: GPU-21234567-89ab-cdef-0123-456789abcdef)
Device does not have or support Nvlink
"""


def matrix(labels: Mapping[tuple[str, str], str], names: Sequence[str], gap: str = "\t", own: str = " X ") -> str:
    """A matrix without affinities; ``gap`` is what stands between its cells."""
    rows = [gap.join([name, *(own if a == name else labels[name, a] for a in names)]) for name in names]
    return "\n".join([gap.join(["", *names]), *rows]) + "\n"
