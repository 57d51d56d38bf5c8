"""What nvidia-smi says of GPUs: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import BAD, judged, of_text
from readers_text import assert_read, one, reported
from smi_texts import TABLE

from dgxcheck.readers.nvidia_smi import catalogue

WINDOWS = """\
PS C:\\Users\\a> nvidia-smi
Tue Mar 12 10:41:23 2024
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 546.12                 Driver Version: 546.12       CUDA Version: 12.3     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA RTX A6000             WDDM  | 00000000:01:00.0  On |                  Off |
|  0%   35C    P8              17W / 300W |   1265MiB / 49140MiB |      3%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
|   1  Quadro RTX 8000               TCC  | 00000000:21:00.0 Off |                    2 |
| 33%   31C    P8              12W / 260W |      9MiB / 46080MiB |      0%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
"""
DRAINED = """\
# nvidia-smi drain -p 0000:9b:00.0 -m 1
Successfully set GPU 00000000:9B:00.0 drain state to: draining.
"""
TO_RESET = """\
GPU 00000000:9A:00.0
    Product Name                                       : NVIDIA A100-SXM4-80GB
    GPU Recovery Action                                : Reset
    ECC Errors
        Channel Repair Pending                         : GPU requires reset
        TPC Repair Pending                             : GPU requires reset
"""
"""Fields that NVML refuses with NVML_ERROR_RESET_REQUIRED; the GPU is on the bus."""
GH200 = "GPU 0: NVIDIA GH200 480GB (UUID: GPU-2e2b6342-3996-51b9-5480-e20df571e09c)\n"
A100 = GH200.replace("GH200 480GB", "A100-SXM4-80GB")
PCI_COUNTS = A100 + """\
    REPLAY_COUNTER:          {}
    L0_TO_RECOVERY_COUNTER:  12
    CORRECTABLE_ERRORS:      2
    NON_FATAL_ERROR:         1
    FATAL_ERROR:             {}
    UNSUPPORTED_REQ:         1
    LANE_ERROR:
\t lane  0: 0
"""
"""The strings of nvidia-smi 550.163."""
ROWS = """\
GPU 00000000:1B:00.0
        Pending                                        : No
        Remapping Failure Occurred                     : No
GPU 00000000:43:00.0
        Pending                                        : Yes
        Remapping Failure Occurred                     : {}
"""
REPAIRS = """\
            SRAM Threshold Exceeded                    : {}
        Channel Repair Pending                         : No
        TPC Repair Pending                             : {}
"""
SLOWED = """\
        HW Slowdown                                    : {}
            HW Thermal Slowdown                        : {}
        SW Thermal Slowdown                            : Not Active
        SW Thermal Slowdown                            : 81 us
        HW Thermal Slowdown                            : 81 us
"""
ERRORS = """\
            SRAM Uncorrectable                         : 0
            DRAM Uncorrectable                         : {}
"""
SUMS = """\
        Volatile
            SRAM Uncorrectable                         : 0
            DRAM Uncorrectable                         : {}
--
"""
MARGINS = """\
GPU 00000000:1B:00.0
        GPU Current Temp                               : 88 C
        GPU T.Limit Temp                               : {} C
        GPU Slowdown T.Limit Temp                      : -2 C
"""
TWO_SLOWED = SLOWED.format("Not Active", "Not Active") + SLOWED.format("Active", "Active")
CELL = """\
| NVIDIA-SMI 590.44.01              Driver Version: 590.44.01      CUDA Version: 13.1     |
|=========================================+========================+======================|
|   1  NVIDIA B200                    On  |   00000000:43:00.0 Off | {:>20} |
| N/A   33C    P0            143W / 1000W |       0MiB / 183359MiB |      0%      Default |
"""
BAR1 = """\
==============NVSMI LOG==============
Attached GPUs                             : 1
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA {}
    BAR1 Memory Usage
        Total                             : {} MiB
        Used                              : 1 MiB
        Free                              : 255 MiB
"""
SHARED = """\
| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:10:00.0 Off |                   On |
| N/A   31C    P0             44W /  400W |       1MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
|   1  NVIDIA A100-SXM4-40GB          On  |   00000000:18:00.0 Off |                   On |
| N/A   31C    P0             44W /  400W |       1MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
| MIG devices:                                                                            |
{}
| Processes:                                                                              |
"""
INSTANCE = "|  1    1   0   0  |              37MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |"
TREE_IN_MIG = """\
<nvidia_smi_log>
\t<gpu id="00000000:10:00.0">
\t\t<mig_mode>
\t\t\t<current_mig>{0}</current_mig>
\t\t\t<pending_mig>{0}</pending_mig>
\t\t</mig_mode>
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t</gpu>
</nvidia_smi_log>
"""
LANES_OF = "index, name, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n{}"
CAPPED = (
    TABLE.partition("|   1  ")[0].replace("Example SXM2-16GB ", "Tesla V100-SXM2...")
    .replace("/ 163W", "/ {}W").replace("/ 32510MiB", "/ {}MiB")
)  # fmt: skip
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "Windows": (WINDOWS, ("fail ecc-uncorrected drain",)),
    "nvidia-smi drain": (DRAINED, ()),
    "nvidia-smi -q of a GPU to be reset": (TO_RESET, ("fail reset-required drain",)),
    "the same without the action": (TO_RESET.replace("GPU Recovery", "Other"),
                                    ("fail reset-required drain",)),
    "nvidia-smi -q of a GPU to be drained": (
        TO_RESET.replace("GPU Recovery Action ", "GPU Reset Status\n        Drain and Reset Recommended")
        .partition("    ECC")[0].replace(": Reset", ": Yes"), ("fail drain-and-reset drain",)),
    "no handle": ("Unable to determine the device handle for GPU0: 0000:9A:00.0: GPU requires reset\n",
                  ("fail reset-required drain",)),
    "nvidia-smi pci": (PCI_COUNTS.format(0, 1), ("warn aer-uncorrectable inspect",)),
    "nvidia-smi pci, good": (PCI_COUNTS.format(0, 0), ()),
    "grep of rows": (ROWS.format("Yes"), ("fail remap-failed drain",)),
    "grep of pending rows": (ROWS.format("No"), ("fail remap-pending drain",)),
    "grep of rows without GPUs": (
        "\n".join(ROWS.splitlines()[1:3] + ROWS.splitlines()[4:] + [""]).format("Yes"), ("fail remap-failed drain",)),
    "grep of repairs": (REPAIRS.format("No", "No") + REPAIRS.format("Yes", "No"), ("fail sram-exceeded drain",)),
    "grep of a repair": (REPAIRS.format("No", "No") + REPAIRS.format("No", "Yes"), ("warn repair-pending drain",)),
    "grep of errors": ("".join(map(ERRORS.format, (0, 3, 2, 3))), ("fail ecc-uncorrected drain",)),
    "grep of errors, good": ("".join(map(ERRORS.format, (0, 3, 0, 3))), ()),
    "grep -A of errors": (SUMS.format(0) + SUMS.format(2), ("fail ecc-uncorrected drain",)),
    "grep of margins": (MARGINS.format(-3), ("warn overheating inspect",)),
    "grep of margins, good": (MARGINS.format(40), ()),
    "grep of slowdowns": (TWO_SLOWED, ("warn thermal-slowdown inspect",)),
    "nvidia-smi, a cell": (CELL.format("GPU requires reset"), ("fail reset-required drain",)),
    "nvidia-smi, a cell of a GPU that is gone": (CELL.format("GPU is lost"), ("fail gpu-lost drain",)),
    "nvidia-smi, a good cell": (CELL.format("0"), ()),
    "nvidia-smi without MIG devices": (
        SHARED.format(f"|  No MIG devices found{68 * ' '}|"), (2 * ("warn mig-empty inspect",))),
    "nvidia-smi, a GPU without MIG devices": (SHARED.format(INSTANCE), ("warn mig-empty inspect",)),
    "nvidia-smi, MIG devices": (SHARED.format(f"{INSTANCE.replace('  1 ', '  0 ', 1)}\n{INSTANCE}"), ()),
    "nvidia-smi -q -x without MIG devices": (TREE_IN_MIG.format("Enabled"), ("warn mig-empty inspect",)),
    "nvidia-smi -q -x, MIG off": (TREE_IN_MIG.format("Disabled"), ()),
    "nvidia-smi -B": ("Excluded GPU 0: 00000000:4B:00.0 (UUID: GPU-b300b300-0000-0000-0000-000000000003)\n",
                      ("warn gpu-excluded inspect",)),
    "nvidia-smi -B, good": ("No excluded devices found.\n", ()),
    "lanes of a module": (LANES_OF.format("0, NVIDIA H200, 5, 5, 8, 8\n"), ("warn link-unseen inspect",)),
    "lanes of a module, good": (LANES_OF.format("0, NVIDIA H200, 5, 5, 16, 16\n"), ()),
    "lanes of a module beside POWER9": (LANES_OF.format("0, Tesla V100-SXM2-16GB, 3, 3, 8, 8\n"), ()),
    "lanes of a card": (LANES_OF.format("0, NVIDIA L40S, 4, 4, 8, 8\n"), ()),
    "nvidia-smi -q, small BAR1": (BAR1.format("H100 80GB HBM3", 256), ("warn bar1-small drain",)),
    "nvidia-smi -q, whole BAR1": (BAR1.format("H100 80GB HBM3", 131072), ()),
    "nvidia-smi -q, small BAR1 beside displays": (BAR1.format("L40S", 256), ()),
    "nvidia-smi, names that are cut": (CAPPED.format(163, 32510), ("warn power-capped change-setting",)),
    "nvidia-smi, names that are cut, good": (CAPPED.format(300, 32510), ()),
    "nvidia-smi, ECC off": (CAPPED.format(300, 32510).replace("                    0 |", "                  Off |"),
        ("warn ecc-off change-setting",)),
    "nvidia-smi, hot": (CAPPED.format(300, 32510).replace("36C", "90C"), ("warn overheating inspect",)),
    "nvidia-smi, warm": (CAPPED.format(300, 32510).replace("36C", "89C"), ()),
    "nvidia-smi, names that are cut, of no known size": (CAPPED.format(163, 24000), ()),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    assert_read(EXPECTED[name], tmp_path)


def test_values_that_grep_chose_are_of_as_many_gpus_as_have_them(tmp_path: Path) -> None:
    _, found = of_text(TWO_SLOWED, tmp_path)
    names = {each["subject"]["name"] for each in found["findings"] if each["subject"]["kind"] == "gpu"}
    assert (names, found["causes"][0]["component"]["name"]) == ({"unnamed GPU", "unnamed GPU 2"}, "unnamed GPU 2")


def test_errors_of_memory_that_may_be_old_are_not_new_ones(tmp_path: Path) -> None:
    """The end of a dump that was cut within its aggregate counts."""
    _, found = of_text(ERRORS.format(7) + "    Remapped Rows\n        Remapping Failure Occurred : No\n", tmp_path)
    assert found["causes"] == []


def test_a_module_at_a_generation_below_its_models_may_be_in_such_a_slot(tmp_path: Path) -> None:
    _, found = of_text(LANES_OF.format("0, NVIDIA H200, 4, 4, 16, 16\n"), tmp_path)
    (odd,) = [each for each in found["findings"] if each["status"] in BAD]
    assert (odd["id"], odd["message"]) == (
        "pcie.generation", "PCIe gen4 at most, its model supports gen5; what its slot supports is not shown"
    )  # fmt: skip


def test_a_gpu_that_is_kept_from_programs() -> None:
    shown = "The current drain state of GPU 00000000:9B:00.0 is: {}."
    results = [reported(one(catalogue.read_drain, shown.format(state))) for state in ("draining", "not draining")]
    assert [outcome for ((outcome, _, _),) in results] == ["note", "pass"]


def test_nothing_of_linux_is_saved_on_windows(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(WINDOWS)
    _, found = judged(str(tmp_path / "text.txt"))
    assert {each["command"][0] for cause in found["causes"] for each in cause["save_first"]} == {"nvidia-smi"}
