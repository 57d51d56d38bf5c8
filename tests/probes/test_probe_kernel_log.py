"""Lines of the kernel log: every spelling of Xid, off the bus, PCIe error and SXid, and what counts once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.kernel_log import MARK, KernelLog
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.kernel_messages import gpu, hca, pcie
from dgxcheck.source.kernel_log.kmsg import line, relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes.kernel_log import facts

GPU = "0000:06:00.0"
XID = "NVRM: Xid (PCI:0000:06:00): 79, pid=12, name=python3, GPU has fallen off the bus."


def log(*lines: tuple[float, str], begins: float = 0.0) -> KernelLog:
    found = facts([line(begins, MARK), *(line(seconds, message) for seconds, message in lines)], "here")
    assert not isinstance(found, Missing)
    return found


def of_text(text: str) -> KernelLog:
    found = times(text)
    assert found is not None
    read = facts(relevant_lines(found), "here")
    assert not isinstance(read, Missing)
    return read


@pytest.mark.parametrize(
    ("message", "due"),
    [
        (XID, (GPU, 79, 12, "python3", "", "GPU has fallen off the bus.")),
        ("NVRM: Xid (PCI:0000:06:00): 13, pid=5, Graphics", (GPU, 13, 5, "", "", "Graphics")),
        ("NVRM: Xid (PCI:0000:06:00): 31, Ch 00000003, intr 1", (GPU, 31, None, "", "", "Ch 00000003, intr 1")),
        ("NVRM: Xid (0000:06:00): 14, Channel", (GPU, 14, None, "", "", "Channel")),
        ("NVRM: Xid (PCI:00000000:06:00): 8", (GPU, 8, None, "", "", "")),
        ("NVRM: Xid (PCI:0000:06:00.0): 43, pid=7, name=x", (GPU, 43, 7, "x", "", "")),
        ("NVRM: Xid (PCI:0000:CB:00 GPU-I:05 GPU-CI:00): 45, pid='<unknown>', name=<unknown>, Ch 1",
         ("0000:cb:00.0", 45, None, "", "GPU-I:05 GPU-CI:00", "Ch 1")),
        ("NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0",
         ("0018:01:00.0", 145, None, "", "", "RLW_RXPIPE Nonfatal XC0")),
    ],
)  # fmt: skip
def test_xid(message: str, due: tuple[object, ...]) -> None:
    said = gpu.xid(message)
    assert said is not None
    assert (said.bdf, said.number, said.pid, said.process, said.part, said.text) == due


@pytest.mark.parametrize(
    "message",
    ["", "NVRM: Xid", "NVRM: Xid (PCI:0000:06:00): x", "NVRM: Xid (PCI:0000:zz:00): 13, x", "NVRM: Xid (PCI:06:00): 13",
     "NVRM: Xid (PCI:0000:06:00): 12345, x", "python: NVRM: Xid (PCI:0000:06:00): 13"],
)  # fmt: skip
def test_no_xid(message: str) -> None:
    assert gpu.xid(message) is None


@given(st.text())
def test_a_parser_takes_any_text(text: str) -> None:
    for each in (
        text, f"NVRM: Xid (PCI:0000:06:00): 1, {text}", f"NVRM: {text}", f"nvidia-nvswitch0: SXid ({text}",
        f"NVRM: API mismatch: the client {text}", f"mlx5_core 0000:05:00.0: {text}", f"nvidia {GPU}:    [ 6] {text}",
        f"mlx5_core 0000:05:00.0: Port module event[error]: module {text}", f"pcieport 0000:00:02.0: AER: {text}",
    ):  # fmt: skip
        for parser in (
            gpu.xid,
            gpu.sxid,
            gpu.off_bus,
            gpu.named,
            gpu.probed,
            gpu.not_started,
            gpu.refused,
            pcie.error,
            pcie.announced,
            pcie.error_bit,
            pcie.given_up,
            hca.trouble,
            hca.begins,
            hca.plugged,
        ):
            parser(each)
    said = gpu.xid(f"NVRM: Xid (PCI:0000:06:00): 13, pid=3, name=a, {text}")
    assert said is not None
    assert (said.bdf, said.number, said.pid, said.text) == (GPU, 13, 3, text.lstrip(" "))


@pytest.mark.parametrize(
    ("message", "due"),
    [
        ("NVRM: GPU 0000:06:00.0: GPU has fallen off the bus.", GPU),
        ("NVRM: GPU at 0000:06:00.0 has fallen off the bus.", GPU),
        ("NVRM: GPU at PCI:0000:06:00: GPU-00000000-0000-0000-0000-000000000600", None),
        ("NVRM: GPU 0000:06:00.0: RmInitAdapter failed! (0x26:0xffff:1290)", None),
    ],
)
def test_off_the_bus(message: str, due: str | None) -> None:
    assert gpu.off_bus(message) == due


@pytest.mark.parametrize(
    ("message", "due"),
    [
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 31", ("0000:c1:00.0", 20034, True)),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, x", ("0000:c1:00.0", 12028, False)),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22013, Minion", ("0000:c1:00.0", 22013, None)),
        ("nvidia-nvswitch3: SXid (PCI:c1:00.0): 22013", None),
    ],
)
def test_sxid(message: str, due: object) -> None:
    assert gpu.sxid(message) == due


@pytest.mark.parametrize(
    ("message", "due"),
    [
        ("pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical", ("0000:00:1c.0", "corrected")),
        ("pcieport 0000:00:1c.0: AER: PCIe Bus Error: severity=Correctable, type=x", ("0000:00:1c.0", "corrected")),
        ("nvidia 0000:06:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=x", (GPU, "nonfatal")),
        ("nvidia 0000:06:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=x", (GPU, "fatal")),
        ("nvidia 0000:06:00.0: PCIe Bus Error: severity=Uncorrected (x)", None),
    ],
)
def test_pcie_error(message: str, due: object) -> None:
    assert pcie.error(message) == due


@pytest.mark.parametrize(
    ("message", "due"),
    [
        ("pcieport 0000:00:02.0: AER: Corrected error received: id=0010", ("0000:00:02.0", "corrected")),
        ("pcieport 0000:80:02.0: AER: Multiple Corrected error received: id=00e5", ("0000:00:1c.5", "corrected")),
        ("pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: 0000:06:00.0", (GPU, "fatal")),
        ("pcieport 0000:00:02.0: AER: Correctable error message received from 0000:06:00.0", (GPU, "corrected")),
        (
            "pcieport 0000:00:03.1: AER: Correctable error message received from 0000:00:00.0",
            ("0000:00:03.1", "corrected"),
        ),
        ("pcieport 0000:00:03.1: AER: Corrected error received: id=0000", ("0000:00:03.1", "corrected")),
        ("pcieport 0000:00:02.0: AER: enabled with IRQ 24", None),
        ("pcieport 0000:05:01.0: DPC: containment event, status:0x1f15 source:0x0600", (GPU, "fatal")),
        ("pcieport 0000:05:01.0: DPC: containment event, status:0x200d, ERR_FATAL received from 0000:06:00.0",
         (GPU, "fatal")),
        ("pcieport 0000:05:01.0: DPC: containment event, status:0x1f01 source:0x0600", ("0000:05:01.0", "fatal")),
        ("pcieport 0000:05:01.0: DPC: containment event, status:0x1f05 source:0x0000", ("0000:05:01.0", "fatal")),
        ("pcieport 0000:05:01.0: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected",
         ("0000:05:01.0", "fatal")),
        ("dpc 0000:05:01.0:pcie008: DPC containment event, status:0x1f01 source:0x0000", ("0000:05:01.0", "fatal")),
    ],
)
def test_pcie_error_announced(message: str, due: object) -> None:
    assert pcie.announced(message) == due


@pytest.mark.parametrize(
    ("message", "due"),
    [
        (f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x26:0xffff:1290)", (GPU, "")),
        (f"NVRM: GPU {GPU}: rm_init_adapter failed, device minor number 2", (GPU, "")),
        (f"NVRM: GPU {GPU}: GPU does not have the necessary power cables connected.", (GPU, "power")),
        ("NVRM: RmInitAdapter failed! (0x27:0x38:1193)", (None, "")),
        ("NVRM: rm_init_adapter(0) failed", (None, "")),
        ("NVRM: rm_init_adapter failed for device bearing minor number 0", (None, "")),
        ("NVRM: BAR1 is 0M @ 0x0 (PCI:0000:06:00.0)", (GPU, "bars")),
        ("nvidia: probe of 0000:06:00.0 failed with error -1", (GPU, "")),
        ("nvidia 0000:06:00.0: probe with driver nvidia failed with error -1", (GPU, "")),
        ("nvidia 0000:06:00.0: enabling device (0140 -> 0142)", None),
        ("NVRM: RmInitAdapter: Cannot initialize GSP firmware RM", (None, "")),
        ("NVRM: _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP", (None, "to-reset")),
        ("NVRM: GPU3 gpuWaitForGfwBootComplete_TU102: failed to wait for GFW_BOOT: (progress 0x1)", (None, "gfw")),
        ("NVRM: gpuWaitForGfwBootComplete_TU102: GSP failed to halt with GFW_BOOT: (progress 0xff)", (None, "gfw")),
        ("NVRM: kgspInitRm_IMPL: failed to extract VBIOS image from ROM: 0x25", (None, "rom")),
        (f"NVRM: GPU {GPU}: RmFetchGspRmImages: No firmware image found", (GPU, "firmware")),
        ("NVRM: RmFetchGspRmImages: No firmware image found", (None, "firmware")),
    ],
)
def test_a_gpu_that_did_not_start(message: str, due: object) -> None:
    assert gpu.not_started(message) == due


def test_a_gpu_that_does_not_wake_up_is_off_the_bus() -> None:
    cold = f"nvidia {GPU}: Unable to change power state from D3cold to D0, device inaccessible"
    assert gpu.off_bus(cold) == GPU
    assert gpu.off_bus(cold.replace("nvidia", "xhci_hcd")) is None


@pytest.mark.parametrize(
    ("message", "due"),
    [
        (f"nvidia {GPU}: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]", GPU),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT device=06:00.0 domain=0x0003 address=0x80000040 flags=0x0020]", GPU),
        ("DMAR: [DMA Write] Request device [06:00.0] fault addr 7f000 [fault reason 05] PTE Write access", GPU),
        ("DMAR: [DMA Read NO_PASID] Request device [0000:06:00.0] fault addr 0x7f000 [fault reason 0x06]", GPU),
        ("DMAR: DRHD: handling fault status reg 2", None),
        ("AMD-Vi: Interrupt remapping enabled", None),
    ],
)
def test_an_access_that_an_iommu_refused(message: str, due: str | None) -> None:
    assert [fault.bdf for fault in pcie.iommu_faults([(1.0, message)])] == ([due] if due else [])


def test_a_silent_system_processor_is_an_xid_119_of_a_numbered_gpu() -> None:
    silent = "1.000000;NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 8 heartbeat 1"
    found = facts([f"0.000000;{MARK}", silent, silent.replace("1.", "2.", 1)], "here")
    assert isinstance(found, KernelLog)
    assert [(gpu_at(xid.bdf), xid.number) for xid in found.xids] == [("GPU6", 119)]


@pytest.mark.parametrize(
    ("message", "due"),
    [
        ("NVRM: API mismatch: the client has the version 550.54.14, but", ("550.54.14", "", False)),
        ("NVRM: API mismatch: the client has the version 1.0-7184, but", ("1.0-7184", "", False)),
        ("NVRM: API mismatch: the client 'x' (pid 7) has the version 1.2.3, but this kernel module has the version 2.",
         ("1.2.3", "2", False)),
        ("nvidia-nvswitch: Version mismatch, kernel version 580.105.08 user version 580.95.05",
         ("580.95.05", "580.105.08", True)),
        ("NVRM: API mismatch: the client has the version", None),
        ("NVRM: this kernel module has the version 545.23.08.  Please", None),
    ],
)  # fmt: skip
def test_a_program_that_was_turned_away(message: str, due: object) -> None:
    assert gpu.refused(message) == due


HCA = "0000:05:00.0"
MODULE = f"mlx5_core {HCA}: Port module event[error]: module 0, Cable error, High Temperature"


@pytest.mark.parametrize(
    ("message", "due"),
    [
        (f"mlx5_core {HCA}: init_one:1371:(pid 803): mlx5_load_one failed with error code -22", ("not started", None)),
        (f"mlx5_core {HCA}: mlx5_load_one failed with error code -22", ("not started", None)),
        (f"mlx5_core {HCA}: probe_one:1457:(pid 3): mlx5_init_one failed with error code -110", ("not started", None)),
        (f"mlx5_core: probe of {HCA} failed with error -22", ("not started", None)),
        (f"mlx5_core {HCA}: probe with driver mlx5_core failed with error -22", ("not started", None)),
        (MODULE, ("module", 0)),
        (f"mlx5_core {HCA}: mlx5_port_module_event:1131:(pid 0): Port module event[error]: module 1, Cable error, x",
         ("module", 1)),
        (f"mlx5_core {HCA}: mlx5_pcie_event:299:(pid 8): Detected insufficient power on the PCIe slot (27W).",
         ("power", None)),
        (f"mlx5_core {HCA}: poll_health:174: device's health compromised - reached miss count.", ("firmware", None)),
        (f"mlx5_core {HCA}: poll_health:940:(pid 0): Fatal error 1 detected", ("firmware", None)),
        (f"mlx5_core {HCA}: print_health_info:425:(pid 0): synd 0x1: firmware internal error", ("firmware", None)),
        (f"mlx5_core {HCA}: wait_func:1160:(pid 9): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource",
         ("not started", None)),
        (f"mlx5_core {HCA}: temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1",
         ("temperature", None)),
        (f"mlx5_core {HCA}: mlx5_cmd_out_err:838:(pid 9): ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter"
         "(0x3), syndrome (0x305684), err(-22)", None),
        (f"mlx5_core {HCA}: Port module event: module 0, Cable plugged", None),
        (f"mlx5_core {HCA}: mlx5_pcie_event:294:(pid 5): PCIe slot advertised sufficient power (75W).", None),
        (f"mlx5_core {HCA} enp5s0: Link up", None),
        ("mlx5_core 05:00.0: mlx5_load_one failed with error code -22", None),
        (f"python: {MODULE}", None),
    ],
)  # fmt: skip
def test_mlx5(message: str, due: object) -> None:
    said = hca.trouble(message)
    assert (None if said is None else (said.trouble, said.module)) == due
    assert said is None or said.bdf == HCA


def test_trouble_of_an_hca_ends_with_a_new_start_or_a_new_module() -> None:
    other = MODULE.replace("module 0", "module 1")
    found = log(
        (1.0, MODULE),
        (1.0, MODULE),
        (2.0, other),
        (3.0, f"mlx5_core {HCA}: Port module event: module 0, Cable plugged"),
    )
    assert [(each.module, each.text, each.past) for each in found.hcas] == [
        (0, "Cable error, High Temperature", True), (1, "Cable error, High Temperature", False),
    ]  # fmt: skip
    restarted = log((2.0, other), (4.0, f"mlx5_core {HCA}: firmware version: 12.28.2006"), (5.0, MODULE))
    assert [each.past for each in restarted.hcas] == [True, False]


def test_a_driver_that_is_loaded_anew_has_turned_nobody_away_and_started_all() -> None:
    failed = f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x26:0xffff:1290)"
    turned = "NVRM: API mismatch: the client has the version 1.2.3, but"
    loaded = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05"
    found = log((1.0, failed), (1.0, turned), (2.0, loaded), (3.0, failed), (3.0, failed), (4.0, turned))
    assert [(each.bdf, each.seconds, each.past) for each in found.not_started] == [(GPU, 1.0, True), (GPU, 3.0, False)]
    assert [(each.version, each.past) for each in found.refused] == [("1.2.3", True), ("1.2.3", False)]


def test_an_error_has_the_names_of_its_bits_and_whether_it_was_recovered() -> None:
    said = (
        f"nvidia {GPU}: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)",
        f"nvidia {GPU}:   device [10de:1db1] error status/mask=00104000/00000000",
        f"nvidia {GPU}:    [14] CmpltTO                (First)",
        f"nvidia {GPU}:    [20] Unsupported Request",
        f"nvidia {GPU}: AER: can't recover (no error_detected callback)",
    )
    (found,) = log(*((1.0 + n / 1000, each) for n, each in enumerate(said))).pcie
    assert (found.names, found.unrecovered) == (("CmpltTO", "Unsupported Request"), True)
    late = log((1.0, said[0]), (9.0, said[2]), (9.0, said[2].replace(GPU, "0000:07:00.0")))
    assert [(each.names, each.unrecovered) for each in late.pcie] == [((), False)]


def test_an_error_of_a_port_has_the_gpus_below_it_that_were_lost() -> None:
    """The lines of https://github.com/rwth-i6/returnn/issues/1500."""
    port = "pcieport 0000:00:03.0"
    announced = f"{port}: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0"
    detailed = f"{port}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"
    rest = (
        f"nvidia {GPU}: AER: can't recover (no error_detected callback)",
        f"snd_hda_intel {GPU[:-1]}1: AER: Can't recover (no error_detected callback)",
        f"{port}: AER: Root Port link has been reset (0)", f"{port}: AER: device recovery failed",
    )  # fmt: skip
    for begins in ((announced, detailed), (detailed,), (announced,)):
        (found,) = log(*((1.0 + n / 1000, each) for n, each in enumerate((*begins, *rest)))).pcie
        assert (found.bdf, found.other_gpus) == ("0000:00:03.0", (GPU,))
    for early, late in ((detailed, 99.0), (detailed.replace("Uncorrected (Fatal)", "Corrected"), 1.0)):
        assert [each.other_gpus for each in log((1.0, early), (late, rest[0])).pcie] == [()]
    (own,) = log((1.0, announced.replace("received: 0000:00:03.0", f"received: {GPU}")), (1.0, rest[0])).pcie
    assert (own.bdf, own.unrecovered, own.other_gpus) == (GPU, True, ())
    error = f"mlx5_core {HCA}: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"
    (below,) = log((1.0, error), (2.0, rest[-1])).pcie  # the kernel names the bridge above it
    assert (below.bdf, below.unrecovered) == (HCA, True)
    both = log((1.0, error.replace(HCA, GPU)), (1.5, error), (2.0, rest[-1])).pcie  # below that port?
    assert [each.unrecovered for each in both] == [False, False]


def test_an_error_that_was_announced_counts_once() -> None:
    announced = (5.0, f"pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: {GPU}")
    told = (5.1, f"nvidia {GPU}: PCIe Bus Error: severity=Uncorrected (Fatal), type=x")
    assert len(log(announced, told).pcie) == 1
    assert [each.seconds for each in log(announced).pcie] == [5.0]
    assert len(log(announced, (9.0, told[1])).pcie) == 2
    assert len(log(announced, announced, told).pcie) == 2


def test_history_ends_with_the_load_of_the_driver() -> None:
    core = (20.0, "nvidia-nvlink: Nvlink Core is being initialized, major device number 234")
    gone = [
        (20.5, f"NVRM: The NVIDIA GPU {GPU}"),
        (20.5, "NVRM: fallen off the bus and is not responding to commands."),
    ]
    loaded = (21.0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05")
    found = log((10.0, XID), core, *gone, loaded, (30.0, XID))
    assert [(each.seconds, each.past) for each in found.xids] == [(10.0, True), (30.0, False)]
    assert [(each.seconds, each.xid, each.past) for each in found.off_bus] == [
        (10.0, True, True), (20.5, False, False), (30.0, True, False),
    ]  # fmt: skip
    assert not log((10.0, XID), core).xids[0].past


@pytest.mark.parametrize(("kind", "last"), [
    ("off_bus", "NVRM: fallen off the bus and is not responding to commands."),
    ("not_started", "NVRM: installed in this system is not supported by open"),
])  # fmt: skip
def test_lines_of_one_second_that_go_on_are_each_of_the_gpu_named_before(kind: str, last: str) -> None:
    gpus = [f"0000:{bus}:00.0" for bus in ("06", "07", "0a")]
    lines = [(20.0, text) for gpu in gpus for text in (f"NVRM: The NVIDIA GPU {gpu} (PCI ID: 10de:1db8)", last)]
    assert [each.bdf for each in getattr(log(*lines), kind)] == gpus


@pytest.mark.parametrize(
    "reset",
    ["nvidia 0000:06:00.0: enabling device (0140 -> 0142)",
     "NVRM: Xid (PCI:0000:06:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"],
)  # fmt: skip
def test_history_of_one_gpu_ends_with_its_reset(reset: str) -> None:
    other = XID.replace("06:00", "07:00")
    found = log((1.0, XID), (1.0, other), (2.0, reset)).xids
    assert [(each.bdf, each.past) for each in found if each.number == 79] == [(GPU, True), ("0000:07:00.0", False)]


def test_equal_lines_of_one_time_count_once() -> None:
    assert len(log((1.0, XID), (1.0, XID), (2.0, XID)).xids) == 2


@pytest.mark.parametrize("lines", [(), ("x",), ("nan;x", "inf;x", "-1;x", ";x", "1e3;x")])
def test_lines_without_a_time_are_garbled(lines: tuple[str, ...]) -> None:
    found = facts(lines, "here")
    assert isinstance(found, Missing)
    assert found.gap is Gap.GARBLED
