"""Which components are to blame where one text tells of several."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.assessment import Request, assess

LOST = "[  812.5] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
REFUSED = "nvidia-container-cli: {} error: {}: unknown\n"
NO_TOOLKIT = 'could not select device driver "" with capabilities: [[gpu]].\n'


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (LOST + REFUSED.format("initialization", "driver rpc error: timed out"), ["gpu"]),
        (LOST + REFUSED.format("device", "3"), ["gpu"]),
        (LOST + "CUDA error 999: unknown error\n", ["gpu"]),
        (LOST + NO_TOOLKIT, ["host", "gpu"]),
        (REFUSED.format("initialization", "driver rpc error: timed out"), ["driver"]),
        (REFUSED.format("device", "3"), ["host"]),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
         + REFUSED.format("device", "3"), ["driver"]),
    ],
)  # fmt: skip
def test_what_a_program_was_refused_follows_from_the_gpu_or_driver(text: str, kinds: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    path.write_text(text)
    assert [cause.component.kind for cause in assess(str(path), Request()).diagnosis.causes] == kinds


HEARTBEAT = "NVRM: _kgspIsHeartbeatTimedOut: Heartbeat timed out, diff 79682 timeout 5200\n"
RECOVERY = "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 ({})\n"
FALLEN = "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n"
WPR2 = "NVRM: GPU0 _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP\n"
GFW = "NVRM: GPU0 kgspWaitForGfwBootOk_TU102: failed to wait for GFW boot complete: 0x55 VBIOS version 96.00.1\n"
NO_GSP = "NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM\n"
NO_START = "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:2168)\n"
INVALID_BAR = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid\n"
NO_PROBE = "nvidia: probe of 0000:01:00.0 failed with error -1\nNVRM: None of the NVIDIA devices were initialized.\n"
NO_DRIVER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
NVME = "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS={}\n"


@pytest.mark.parametrize(("text", "component", "words", "first"), [
    (HEARTBEAT + RECOVERY.format("GPU Reset Required"), "GPU@0000:01:00.0", "Xid 154", "drain"),
    (FALLEN + RECOVERY.format("PF FLR"), "GPU@0000:01:00.0", "fell off the bus", "drain"),
    (WPR2 + NO_GSP + NO_START, "GPU@0000:01:00.0", "has to be reset first", "drain"),
    (GFW + NO_GSP + NO_START, "GPU@0000:01:00.0", "(GFW) did not finish booting", "drain"),
    (INVALID_BAR + NO_PROBE + NO_DRIVER, "GPU@0000:01:00.0", "could not start", "drain"),
    (WPR2 + NO_GSP, "unnamed GPU", "has to be reset first", "drain"),
    (NVME.format("0x10"), "nvme0", "no longer answered on PCIe", "inspect"),
    (NVME.format("0x10").replace("0xffffffff", "0x1"), "nvme0", "1 I/O error logged", "inspect"),
    ("nvme nvme0: pci function 0000:22:00.0\nDMAR: [DMA Read NO_PASID] Request device [22:00.0] fault addr 0xfe000000"
     f" [fault reason 0x06] PTE\n{NVME.format('0x10')}", "host", "the IOMMU refused 1 access", "drain"),
    ("CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over nvlink or a hardware error\n", "unnamed GPU",
     "error 226", "inspect"),
    ("cudaGetDeviceCount() failed: forward compatibility was attempted on non supported HW\n", "host", "error 804",
     "inspect"),
])  # fmt: skip
def test_a_text_without_times_has_one_cause(
    text: str, component: str, words: str, first: str, tmp_path: Path
) -> None:
    path = tmp_path / "mail.txt"
    path.write_text(text)
    found = assess(str(path), Request())
    (cause,) = found.diagnosis.causes
    assert cause.component.name == component
    assert words in next(each.judgement.message for each in found.findings if each.key == cause.explains[0])
    assert cause.actions[0].step == first
