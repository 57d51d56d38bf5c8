"""Real lines of the kernel log, by the check that judges them and the fault that it finds on a DGX-1 with eight V100.

Bus ids are those of the box: GPU2 is 0000:0a:00.0, an HCA 0000:0c:00.0. Where a public source is known it stands
above; the words are the driver's or the kernel's, as in its source (``dgxcheck/kernel_messages``).
"""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import replace
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes.kernel_log import facts

GPU, HCA, PORT, NOWHERE = "0000:0a:00.0", "0000:0c:00.0", "0000:09:08.0", "0000:77:00.0"
_X = "NVRM: Xid (PCI:0000:0a:00): "
_MLX5 = f"mlx5_core {HCA}: "
_HE = "[Hardware Error]: "
_NAMED = f"NVRM: The NVIDIA GPU {NOWHERE} (PCI ID: 10de:2b85)"
_OLD = f"NVRM: The NVIDIA GPU {NOWHERE} (PCI ID: 10de:1b06)"
_FRAME = " os_acquire_rwlock_write+0x30/0x40 [nvidia]"
_HUNG = "INFO: task python3:4711 blocked for more than 120 seconds."
OF_DISK = "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0"
OF_RAID = "megaraid_sas 0000:04:00.0: Found FW in FAULT state, will reset adapter scsi0."
AER = f"pcieport {PORT}: PCIe Bus Error: severity=Uncorrectable ({{}}), type=x"
Lines = tuple[str, ...]

JUDGED: tuple[tuple[Lines, str, FaultKind], ...] = (
    # the driver
    ((f"{_X}62, pid=12, name=python3, Internal micro-controller halt",), "kernel.xid", Fault.XID),
    (("nvidia-nvswitch0: SXid (PCI:0000:c7:00.0): 20034, Fatal, Link 02 LTSSM Fault Up",), "kernel.xid",
     Fault.NVSWITCH),
    ((f"NVRM: GPU {GPU}: GPU has fallen off the bus.", f"NVRM: GPU {GPU}: GPU serial number is 0323617057482."),
     "kernel.off-bus", Fault.GPU_LOST),
    ((f"nvidia {GPU}: Unable to change power state from D3cold to D0, device inaccessible",), "kernel.off-bus",
     Fault.GPU_LOST),
    ((f"NVRM: The NVIDIA GPU {GPU} (PCI ID: 10de:1db1)", "NVRM: installed in this system has",
      "NVRM: fallen off the bus and is not responding to commands."), "kernel.off-bus", Fault.GPU_LOST),
    ((f"NVRM: The NVIDIA GPU {GPU} (PCI ID: 10de:1db1) installed in this",
      "NVRM: system has fallen off the bus and is not responding to commands."), "kernel.off-bus", Fault.GPU_LOST),
    ((f"NVRM: The NVIDIA GPU {GPU} installed in this system has fallen off the bus and is not responding.",),
     "kernel.off-bus", Fault.GPU_LOST),
    # https://github.com/NVIDIA/nvtrust/issues/54
    (("NVRM: confComputeSetErrorState_KERNEL: ConfCompute: Fatal error hit!",), "kernel.driver-errors",
     Fault.CONFIDENTIAL_COMPUTING),
    (("NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTime 1",), "kernel.xid", Fault.XID),
    (("NVRM: GPU2 _kgspRpcRecvPoll: GSP RM heartbeat timed out",), "kernel.xid", Fault.XID),
    (("NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out",), "kernel.xid", Fault.XID),
    (("NVRM: _kgspIsHeartbeatTimedOut: Heartbeat timed out",), "kernel.xid", Fault.XID),
    # Linux drivers/pci/pci.c: before 5.18 and 5.7; a minute after a reset
    *(((f"nvidia {GPU}: {words}",), "kernel.off-bus", Fault.GPU_LOST) for words in (
        "can't change power state from D3cold to D0 (config space inaccessible)",
        "Refused to change power state, currently in D3", "not ready 65535ms after bus reset; giving up")),
    (("NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned"
      " from rmStatus @ kernel_ce_gv100.c:106",), "kernel.off-bus", Fault.GPU_LOST),
    # https://github.com/scitix/sichek/issues/51
    (("NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from"
      " status @ kernel_channel.c:2874",), "kernel.xid", Fault.RESET_REQUIRED),
    (("NVRM: GPU1 nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned"
      " from status @ kernel_channel.c:2874",), "kernel.xid", Fault.RESET_REQUIRED),
    # NVIDIA/open-gpu-kernel-modules issue 1080: nothing but failed calls
    (("NVRM: GPU0 _issueRpcAndWait: rpcSendMessage failed with status 0x0000000f for fn 10 sequence 7!",),
     "kernel.off-bus", Fault.GPU_LOST),
    (("NVRM: GPU0 _issueRpcAndWait: rpcRecvPoll failed with status 0x00000062 for fn 76!",), "kernel.xid",
     Fault.RESET_REQUIRED),
    # OE4T/tegra-demo-distro issue 342, balena-os/balena-jetson-orin issue 464
    (("nvgpu: 17000000.gpu  nvgpu_set_err_notifier_locked:143  [ERR]  error notifier set to 62 for ch 3 owned by a",),
     "kernel.xid", Fault.XID),
    ((f"NVRM: GPU {GPU}: frobnicator failed (0x24)",), "kernel.driver-errors", Fault.DRIVER_ERROR),
    ((f"nvidia-nvswitch2: probe of {NOWHERE} failed with error -1",), "kernel.driver-errors", Fault.DRIVER_ERROR),
    # Linux en/reporter_tx.c; NVIDIA/gdrcopy issues 1 and 30
    ((f"mlx5_core {HCA} eth1: ERR CQE on SQ: 0x1dbb",), "kernel.driver-errors", Fault.DRIVER_ERROR),
    (("gdrdrv:gdrdrv_pin_buffer:nvidia_p2p_get_pages(va=704fe0000 len=327680 p2p_token=0 va_space=0) failed"
      " [ret = -22]",), "kernel.driver-errors", Fault.DRIVER_ERROR),
    ((f"mlx5_core {HCA}: mlx5_frob:12:(pid 7): frob failed with error -5",), "kernel.driver-errors",
     Fault.DRIVER_ERROR),
    (("nvidia-uvm: unable to frob the page tables",), "kernel.driver-errors", Fault.DRIVER_ERROR),
    # Linux hw/efa/efa_com.c, and core/device.c for what stands before; NVIDIA/NVSentinel
    ((f"efa {HCA} rdmap0s6: Wait for completion (polling) timeout",), "kernel.driver-errors", Fault.DRIVER_ERROR),
    (("infiniband rdmap16s27: The device didn't send any completion for admin cmd CREATE_QP(6) status 0"
      " (ctx 0x000000001d2f9d31, sq producer: 12, sq consumer: 11, cq consumer: 11)",
      "infiniband rdmap16s27: Failed to process command CREATE_QP (opcode 6) comp_status 1 err -22"),
     "kernel.driver-errors", Fault.DRIVER_ERROR),
    ((f"efa {HCA}: EFA device init failed",), "kernel.driver-errors", Fault.DRIVER_ERROR),
    # open-gpu-kernel-modules issue 1358
    (("NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from x",),
     "kernel.driver-errors", Fault.DRIVER_ERROR),
    # why it takes no GPU
    # NVIDIA/aicr issue 1858, nvtrust issue 55; open-gpu-kernel-modules issues 587, 892, 876; nvtrust issue 19
    ((f"NVRM: The NVIDIA GPU {NOWHERE} (PCI ID: 10de:2330)", "NVRM: installed in this system is not supported by the",
      "NVRM: NVIDIA 580.126.09 driver release."), "kernel.gpu-start", Fault.GPU_UNRECOGNISED),
    ((f"NVRM: The NVIDIA GPU {NOWHERE} (PCI ID: 10de:2331)", "NVRM: installed in this system is not supported by open",
      "NVRM: nvidia.ko because it does not include the required GPU"), "kernel.gpu-start", Fault.GPU_UNRECOGNISED),
    *(((f"NVRM: No NVIDIA {words}",), "kernel.gpu-start", Fault.GPU_MISSING)
      for words in ("GPU found.", "graphics adapter found!")),
    # open-gpu-kernel-modules issue 1151
    (("NVRM: osInitNvMapping: *** Cannot attach gpu", f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x22:0x56:894)"),
     "kernel.gpu-start", Fault.GPU_UNRECOGNISED),
    ((f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x62:0x51:1941)",), "kernel.gpu-start", Fault.START_MEMORY),
    (("NVRM: _kgspBootGspRm: (the GPU is likely in a bad state and may need to be reset)",
      f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x62:0x40:1941)"), "kernel.gpu-start", Fault.GPU_NOT_STARTED),
    # kgspWaitForGfwBootOk_TU102, gpuWaitForGfwBootComplete_TU102, kgspInitRm_IMPL of the open kernel modules
    *(((f"NVRM: {line}",), "kernel.gpu-start", Fault.GPU_NOT_STARTED) for line in (
        "gpuWaitForGfwBootComplete_TU102: failed to wait for GFW_BOOT: (progress 0x1)",
        "kgspWaitForGfwBootOk_TU102: failed to wait for GFW boot complete: 0x55 VBIOS version 96.00.61.00.01",
        "kgspWaitForGfwBootOk_TU102: (the GPU may be in a bad state and may need to be reset)",
        "kgspExtractVbiosFromRom_TU102: did not find valid ROM signature",
        "kgspInitRm_IMPL: failed to extract VBIOS image from ROM: 0x25")),
    (("NVRM: GPU0 _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP",), "kernel.gpu-start",
     Fault.GPU_NOT_STARTED),
    (("NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM",), "kernel.gpu-start", Fault.GPU_NOT_STARTED),
    (("NVRM kfspSendBootCommands_GH100: FSP boot cmds failed. RM cannot boot.",), "kernel.gpu-start",
     Fault.GPU_NOT_STARTED),
    (("nvgpu: 17000000.gpu nvgpu_gr_falcon_load_ctxsw:7 [ERR]  Unable to recover GR falcon",), "kernel.gpu-start",
     Fault.GPU_NOT_STARTED),
    ((f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x26:0xffff:1290)",
      f"NVRM: GPU {NOWHERE}: rm_init_adapter failed, device minor number 0"), "kernel.gpu-start",
     Fault.GPU_NOT_STARTED),
    ((f"nvidia: probe of {NOWHERE} failed with error -1",), "kernel.gpu-start", Fault.GPU_NOT_STARTED),
    ((f"nvidia {NOWHERE}: probe with driver nvidia failed with error -1",), "kernel.gpu-start", Fault.GPU_NOT_STARTED),
    ((f"NVRM: GPU {NOWHERE}: GPU does not have the necessary power cables connected.",), "kernel.gpu-start",
     Fault.GPU_UNPOWERED),
    (("NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
      f"NVRM: BAR1 is 0M @ 0x0 (PCI:{NOWHERE})"), "kernel.gpu-start", Fault.BAR1_SMALL),
    ((f"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: NVRM: BAR1 is 0M @ 0x0 (PCI:{NOWHERE})",),
     "kernel.gpu-start", Fault.BAR1_SMALL),
    # NVIDIA/open-gpu-kernel-modules pull request 1109
    (("NVRM: Fatal Error while attempting to resize PCIe BARs.",), "kernel.gpu-start", Fault.BAR1_SMALL),
    # Linux drivers/pci/setup-res.c, pci_enable_resources, before and since 6.7; the latter of linux-pci in April 2024
    ((f"nvidia {NOWHERE}: can't enable device: BAR 1 [mem size 0x400000000 64bit pref] not assigned",),
     "kernel.gpu-start", Fault.BAR1_SMALL),
    ((f"nvidia {NOWHERE}: BAR 5 [io  0x0000-0x007f]: not claimed; can't enable device",
      "NVRM: pci_enable_device failed, aborting"), "kernel.gpu-start", Fault.BAR1_SMALL),
    # kata-containers/kata-containers issue 1142
    (("NVRM: Can't find an IRQ for your NVIDIA card!",), "kernel.gpu-start", Fault.GPU_REFUSED),
    # of a GPU that the driver has not got: secboot, gr and fifo of nouveau
    ((f"nouveau {NOWHERE}: secboot: error during falcon reset: -110", f"nouveau {NOWHERE}: gr: init failed, -110"),
     "kernel.gpu-start", Fault.GPU_REFUSED),
    # NVIDIA/open-gpu-kernel-modules issues 828, 943
    ((f"nvidia {NOWHERE}: Direct firmware load for nvidia/570.172.08/gsp_ga10x.bin failed with error -2",
      "NVRM: RmFetchGspRmImages: No firmware image found",
      f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x61:0x56:1697)"), "kernel.gpu-start", Fault.GPU_REFUSED),
    # NVIDIA/open-gpu-kernel-modules discussions; workspace notes of RTX PRO 6000 and RTX 5060 hosts
    ((_NAMED, "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
      f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x22:0x56:884)"), "kernel.gpu-start", Fault.GPU_REFUSED),
    ((_OLD, "NVRM: installed in this system is not supported by open",
      "NVRM: nvidia.ko because it does not include the required GPU"), "kernel.gpu-start", Fault.GPU_REFUSED),
    ((_NAMED, "NVRM: installed in this vGPU host system is not supported by", "NVRM: open nvidia.ko."),
     "kernel.gpu-start", Fault.GPU_REFUSED),
    ((_OLD, "NVRM: installed in this system is not supported by the", "NVRM: NVIDIA 595.45.04 driver release."),
     "kernel.gpu-start", Fault.GPU_REFUSED),
    (("NVRM: The NVIDIA Tesla K80 GPU installed in this system is",
      "NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please"), "kernel.gpu-start", Fault.GPU_REFUSED),
    (("NVRM: The NVIDIA probe routine was not called for 1 device(s).",), "kernel.gpu-start", Fault.GPU_REFUSED),
    (("NVRM: request_mem_region failed for 16M @ 0xe2000000. This can",), "kernel.gpu-start", Fault.GPU_REFUSED),
    (("nvidia: version magic '6.8.0-31-generic SMP preempt mod_unload modversions ' should be"
      " '6.8.0-35-generic SMP preempt mod_unload modversions '",), "kernel.gpu-start", Fault.MODULE_NOT_BUILT),
    (("module nvidia: .gnu.linkonce.this_module section size must match the kernel's built struct module size",),
     "kernel.gpu-start", Fault.MODULE_NOT_BUILT),
    (("nvidia: disagrees about version of symbol module_layout",), "kernel.gpu-start", Fault.MODULE_NOT_BUILT),
    (("gdrdrv: disagrees about version of symbol nvidia_p2p_get_pages",), "kernel.gpu-start", Fault.ADD_ON_MODULE),
    (("nvidia_fs: module using GPL-only symbols uses symbols from proprietary module nvidia.",
      "nvidia_fs: Unknown symbol nvidia_p2p_get_pages (err -2)"), "kernel.gpu-start", Fault.ADD_ON_MODULE),
    (("nvidia_uvm: module using GPL-only symbols uses symbols from proprietary module nvidia.",
      "nvidia_uvm: Unknown symbol kthread_bind (err -22)"), "kernel.gpu-start", Fault.MODULE_REFUSED),
    (("nvidia_uvm: Unknown symbol nvUvmInterfaceDisableAccessCntr (err -2)",), "kernel.gpu-start",
     Fault.MODULE_REFUSED),
    (("nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",), "kernel.gpu-start",
     Fault.PEER_MEMORY),
    (("nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)",), "kernel.gpu-start",
     Fault.PEER_MEMORY),
    # found on an H100, gpud; and on six nodes of B300
    (("NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!",), "kernel.nvlink",
     Fault.NVLINK_UNDETECTED),
    (("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!",), "kernel.nvlink",
     Fault.NVLINK_UNDETECTED),
    # NVIDIA/nvshmem issue 40: eight H200, driver 575.57.08
    (("NVRM: nvCheckOkFailedNoLog: Check failed: NVLink fabric state cached by the driver is out of sync"
      " [NV_ERR_FABRIC_STATE_OUT_OF_SYNC] (0x00000087) returned from status @ mem_multicast_fabric.c:2917",),
     "kernel.nvlink", Fault.FABRIC_OUT_OF_SYNC),
    # PCIe
    ((f"nvidia {GPU}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
      f"nvidia {GPU}:    [ 5] SDES                   (First)",
      f"nvidia {GPU}: AER: can't recover (no error_detected callback)"), "kernel.aer", Fault.AER_LOGGED),
    ((f"pcieport 0000:00:03.0: AER: Uncorrected (Non-Fatal) error received: {GPU}",), "kernel.aer", Fault.AER_LOGGED),
    (("pcieport 0000:00:02.0: DPC: containment event, status:0x1f01 source:0x0000",), "kernel.aer", Fault.AER_LOGGED),
    # lore.kernel.org: ConnectX-3 Pro, kernel 5.1.21
    ((f"{{1}}{_HE}event severity: fatal", f"{{1}}{_HE} Error 0, type: fatal",
      f"{{1}}{_HE}  section_type: PCIe error", f"{{1}}{_HE}  port_type: 4, root port",
      f"{{1}}{_HE}  device_id: {PORT}", f"{{1}}{_HE}  vendor_id: 0x8086, device_id: 0x2f08"), "kernel.aer",
     Fault.AER_LOGGED),
    (("BERT: Error records from previous boot:", f"{_HE}event severity: fatal", f"{_HE} Error 0, type: fatal",
      f"{_HE}  section_type: PCIe error", f"{_HE}  device_id: {GPU}"), "kernel.aer", Fault.AER_LOGGED),
    (("pcieport 0000:00:02.0: pciehp: Slot(5): Link Down",), "kernel.hot-plug", Fault.UNPLUGGED),
    # Linux before 4.19
    (("pciehp 0000:00:02.0:pcie24: slot(6): Link Down event",), "kernel.hot-plug", Fault.UNPLUGGED),
    (("pciehp 0000:00:02.0:pcie004: Slot(5): Card not present",), "kernel.hot-plug", Fault.UNPLUGGED),
    (("pcieport 0000:00:02.0: broken device, retraining non-functional downstream link at 2.5GT/s",
      "pcieport 0000:00:02.0: retraining failed",
      "NVRM: GPU at PCI:0000:06:00: GPU has fallen off the bus."), "kernel.hot-plug", Fault.LINK_UNTRAINED),
    # Linux drivers/pci/pci.c, dpc.c and hotplug/pciehp_hpc.c: an occupied slot, or a port that was reset
    *(((f"pcieport {NOWHERE}: pciehp: Slot(7): Card present", f"pcieport {NOWHERE}: {words}"), "kernel.hot-plug",
       Fault.LINK_UNTRAINED) for words in (
        "Data Link Layer Link Active not set in 1000 msec", "DPC: Data Link Layer Link Active not set in 1000 msec",
        "pciehp: Failed to check link status", "pciehp: Slot(7): No link", "pciehp: Slot(7): No device found",
        "pciehp: Slot(7): Cannot train link: status 0x1041", "pciehp: Slot(7): Power fault")),
    # before Linux 4.19
    ((f"pcieport {NOWHERE}: pciehp: Slot(7): Card present", f"pciehp {NOWHERE}:pcie004: Power fault on slot 7"),
     "kernel.hot-plug", Fault.LINK_UNTRAINED),
    ((f"pciehp {NOWHERE}:pcie004: Data Link Layer Link Active not set in 1000 msec",), "kernel.hot-plug",
     Fault.LINK_UNTRAINED),
    # of whatever kind the device is
    *(((f"{driver} {NOWHERE}: {words}",), "kernel.hot-plug", Fault.UNPLUGGED) for driver, words in (
        ("vfio-pci", "not ready 65535ms after FLR; giving up"),
        ("vfio-pci", "Unable to change power state from D3cold to D0, device inaccessible"),
        ("nvme", "can't change power state from D3cold to D0 (config space inaccessible)"),
        ("ixgbe", "Adapter removed"), ("igb", "PCIe link lost"))),
    ((f"igc {NOWHERE} eno1: PCIe link lost, device now detached",), "kernel.hot-plug", Fault.UNPLUGGED),
    ((f"pci {NOWHERE}: [10de:2331] type 00 class 0x030200 PCIe Endpoint",
      f"vfio-pci {NOWHERE}: not ready 65535ms after bus reset; giving up"), "kernel.off-bus", Fault.GPU_LOST),
    (("DMAR: [DMA Write] Request device [0a:00.0] fault addr f7c4a000 [fault reason 05] PTE Write access is not set",),
     "kernel.iommu-fault", Fault.IOMMU),
    ((f"nvidia {GPU}: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0021 address=0xf7c4a000 flags=0x0020]",),
     "kernel.iommu-fault", Fault.IOMMU),
    (("AMD-Vi: Event logged [IO_PAGE_FAULT device=0a:00.0 domain=0x0021 address=0xf7c4a000 flags=0x0020]",),
     "kernel.iommu-fault", Fault.IOMMU),
    (("iommu ivhd0: AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=0a:00.0 address=0x106c2d8f0]",),
     "kernel.iommu-fault", Fault.IOMMU_UNANSWERED),
    (("AMD-Vi: Completion-Wait loop timed out",), "kernel.iommu-fault", Fault.IOMMU_UNANSWERED),
    (("AMD-Vi: IOMMU 0000:60:00.2: Completion-Wait loop timed out",), "kernel.iommu-fault", Fault.IOMMU_UNANSWERED),
    (("DMAR: VT-d detected Invalidation Time-out Error: SID a00",), "kernel.iommu-fault", Fault.IOMMU_UNANSWERED),
    # lore.kernel.org: mlx5 on a bare metal VF; VMD on Ice Lake
    (("DMAR: [INTR-REMAP] Request device [0a:00.0] fault index 1600 [fault reason 37] Blocked a compatibility format",),
     "kernel.iommu-fault", Fault.IOMMU_BLOCKED),
    (("DMAR: [INTR-REMAP] Request device [0x0a:0x00.0] fault index 0xa00 [fault reason 0x25] Blocked",),
     "kernel.iommu-fault", Fault.IOMMU_BLOCKED),
    # lore.kernel.org: HiSilicon, kernel 5.3
    (("arm-smmu-v3 arm-smmu-v3.0.auto: event 0x10 received:", "arm-smmu-v3 arm-smmu-v3.0.auto: 0x00000a00 00000010",
      "arm-smmu-v3 arm-smmu-v3.0.auto: 0x0000020100000000"), "kernel.iommu-fault", Fault.IOMMU_BLOCKED),
    ((f"arm-smmu-v3 arm-smmu-v3.0.auto: event: F_TRANSLATION client: {GPU} sid: 0xa00 ssid: 0x0 iova: 0xffffe040",),
     "kernel.iommu-fault", Fault.IOMMU_BLOCKED),
    # Linux arm-smmu-v3.c, __arm_smmu_cmdq_skip_err: neither line names the device
    (("arm-smmu-v3 arm-smmu-v3.3.auto: CMDQ error (cons 0x03000a2e): ATC invalidate timeout",), "kernel.iommu-fault",
     Fault.IOMMU_UNANSWERED),
    (("arm-smmu-v3 arm-smmu-v3.3.auto: CMD_SYNC timeout at 0x00000a2e [hwprod 0x00000a31, hwcons 0x00000a2e]",),
     "kernel.iommu-fault", Fault.IOMMU_UNANSWERED),
    # adapters
    ((f"{_MLX5}mlx5_load_one failed with error code -22",), "kernel.hca", Fault.HCA_NOT_STARTED),
    ((f"mlx5_core: probe of {HCA} failed with error -22",), "kernel.hca", Fault.HCA_NOT_STARTED),
    ((f"{_MLX5}probe with driver mlx5_core failed with error -110",), "kernel.hca", Fault.HCA_NOT_STARTED),
    ((f"{_MLX5}wait_func:1085:(pid 9): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource",),
     "kernel.hca", Fault.HCA_NOT_STARTED),
    ((f"{_MLX5}wait_fw_init:211:(pid 8): Waiting for FW pre-initializing, timeout abort in 19s (0x87010000)",
      f"{_MLX5}wait_fw_init:201:(pid 8): Firmware over 120000 MS in pre-initializing state, aborting"),
     "kernel.hca", Fault.HCA_NOT_STARTED),
    ((f"{_MLX5}poll_health:1083:(pid 0): Fatal error 1 detected",
      f"{_MLX5}print_health_info:491:(pid 0): PCI slot is unavailable"), "kernel.hca", Fault.HCA_LOST),
    *(((f"{_MLX5}{words}",), "kernel.hca", Fault.HCA_LOST) for words in (
        "Unable to change power state from D3cold to D0, device inaccessible",
        "not ready 65535ms after bus reset; giving up")),
    ((f"{_MLX5}mlx5_health_try_recover:329:(pid 9): handling bad device here",), "kernel.hca", Fault.HCA_UNRESPONSIVE),
    # Linux mlx5/core/main.c, after the slot was reset for a PCIe error: the health counter stands still
    ((f"{_MLX5}mlx5_pci_slot_reset:1932:(pid 9): mlx5_pci_slot_reset: wait vital failed with error code: -110",),
     "kernel.hca", Fault.HCA_UNRESPONSIVE),
    ((f"{_MLX5}mlx5_health_try_recover:343:(pid 9): health recovery flow aborted, PCI reads still not working",),
     "kernel.hca", Fault.HCA_LOST),
    ((f"{_MLX5}poll_health:174: device's health compromised - reached miss count.",), "kernel.hca",
     Fault.HCA_UNRESPONSIVE),
    ((f"{_MLX5}wait_func:1084:(pid 81): ACCESS_REG(0x805) timeout. Will cause a leak of a command resource",),
     "kernel.hca", Fault.HCA_UNRESPONSIVE),
    ((f"{_MLX5}print_health_info:377:(pid 0): synd 0x1: firmware internal error",), "kernel.hca",
     Fault.HCA_UNRESPONSIVE),
    ((f"{_MLX5}print_health_info:428:(pid 0): Health issue observed, firmware internal error, severity(2) CRITICAL:",),
     "kernel.hca", Fault.HCA_UNRESPONSIVE),
    ((f"{_MLX5}print_health_info:428:(pid 0): Health issue observed, firmware internal error, severity(3) ERROR:",
      f"{_MLX5}print_health_info:440:(pid 0): synd 0x1: firmware internal error"), "kernel.hca", Fault.HCA_HEALTH),
    *(((f"{_MLX5}print_health_info:428:(pid 0): Health issue observed, High temperature, {words}:",),
       "kernel.hca", Fault.HCA_OVERHEATING) for words in ("severity(3) ERROR", "severity(4) WARNING")),
    # netdev: mlx5e recovery of a transmit queue
    ((f"{_MLX5[:-2]} enp8s0f1: TX timeout detected",
      f"{_MLX5[:-2]} enp8s0f1: TX timeout on queue: 1, SQ: 0x11ec, CQ: 0x146d, SQ Cons: 0x0 SQ Prod: 0x1"),
     "kernel.hca", Fault.HCA_STALLED),
    ((f"{_MLX5}print_health_info:432:(pid 0): synd 0x10: High temperature",), "kernel.hca", Fault.HCA_OVERHEATING),
    ((f"{_MLX5}temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1",), "kernel.hca",
     Fault.HCA_OVERHEATING),
    ((f"{_MLX5}mlx5_pcie_event:299:(pid 1): Detected insufficient power on the PCIe slot (27W).",), "kernel.hca",
     Fault.HCA_POWER),
    ((f"{_MLX5}Port module event[error]: module 0, Cable error, High Temperature",), "kernel.port-module",
     Fault.PORT_MODULE),
    # memory and CPUs: illinois-scicomp/machine-shop-maintenance issue 66, node_exporter issue 3511, and others
    (("EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x2031c14",),
     "kernel.memory", Fault.DIMM_ERRORS),
    ((f"{{3}}{_HE}event severity: recoverable", f"{{3}}{_HE}  section_type: memory error",
      f"{{3}}{_HE}  DIMM location: CPU 2 DIMM 30"), "kernel.memory", Fault.DIMM_ERRORS),
    (("mce: Uncorrected hardware memory error in user-access at 3f00",), "kernel.memory", Fault.DIMM_ERRORS),
    (("Memory failure: 0x3f: recovery action for dirty LRU page: Recovered",), "kernel.memory", Fault.DIMM_ERRORS),
    ((f"{_HE}MC4_STATUS[Over|UE|MiscV|-|AddrV|-|-|UECC]: 0xfc10410040080a13",
      f"{_HE}Northbridge Error (node 4): DRAM ECC error detected on the NB."), "kernel.memory", Fault.DIMM_ERRORS),
    ((f"mce: {_HE}CPU:2 (17:31:0) MC17_STATUS[Over|UE|MiscV|AddrV|-|-|UECC|-|-|-]: 0xfc2040000000011b",
      f"mce: {_HE}Unified Memory Controller Ext. Error Code: 0"), "kernel.memory", Fault.DIMM_ERRORS),
    ((f"mce: {_HE}CPU 20: Machine Check Exception: 5 Bank 7: be00000000800400",
      f"mce: {_HE}PROCESSOR 0:706a1 TIME 1537152664 SOCKET 0 APIC 0 microcode 28"), "kernel.machine-check",
     Fault.MACHINE_CHECK),
    (("BERT: Error records from previous boot:", f"{_HE}event severity: fatal", f"{_HE} Error 0, type: fatal",
      f"{_HE}  section type: unknown, 81212a96-09ed-4996-9471-8d729c8e69ed"), "kernel.machine-check",
     Fault.MACHINE_CHECK),
    (("EDAC skx: ECC is disabled on imc 0",), "kernel.memory", Fault.MEMORY_ECC),
    (("EDAC amd64: Node 0: DRAM ECC disabled.",), "kernel.memory", Fault.MEMORY_ECC),
    (("EDAC i10nm: ECC is disabled on imc 0 channel 1",), "kernel.memory", Fault.MEMORY_ECC),
    (("NMI: PCI system error (SERR) for reason a1 on CPU 0.",), "kernel.machine-check", Fault.AER_UNCORRECTABLE),
    (("CPU12: Package temperature above threshold, cpu clock throttled (total events = 812)",),
     "kernel.cpu-throttled", Fault.CPU_THROTTLED),
    (("NETDEV WATCHDOG: enp2s0f0 (ixgbe): transmit queue 3 timed out",), "host.carrier", Fault.HCA_STALLED),
    (("enp2s0f0: transmit timeout: latency 1544 msecs",), "host.carrier", Fault.HCA_STALLED),
    (("ixgbe 0000:02:00.0 enp2s0f0: NETDEV WATCHDOG: CPU: 7: transmit queue 3 timed out 5124 ms",), "host.carrier",
     Fault.HCA_STALLED),
    (("thermal thermal_zone0: critical temperature reached (105 C), shutting down",), "kernel.cpu-throttled",
     Fault.OVERHEATING),
    (("reboot: HARDWARE PROTECTION shutdown (Temperature too high)",), "kernel.cpu-throttled", Fault.OVERHEATING),
    # storage
    (("blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0",), "kernel.disk",
     Fault.DISK_ERRORS),
    (("critical medium error, dev sda, sector 77 op 0x0:(READ)",), "kernel.disk", Fault.DISK_ERRORS),
    (("Buffer I/O error on dev dm-0, logical block 0, async page read",), "kernel.disk", Fault.DISK_ERRORS),
    (("Buffer I/O error on device sda1, logical block 0",), "kernel.disk", Fault.DISK_ERRORS),
    (("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",), "kernel.disk",
     Fault.DISK_ERRORS),
    (("block nvme0n1: no available path - failing I/O",), "kernel.disk", Fault.DISK_ERRORS),
    (("systemd-udevd: attempt to access beyond end of device", "sda1: rw=0, sector=976773168, nr_sectors = 8 limit=0"),
     "kernel.disk", Fault.DISK_ERRORS),
    (("attempt to access beyond end of device", "sda1: rw=0, want=976773176, limit=976773168"), "kernel.disk",
     Fault.DISK_ERRORS),
    (("sd 0:2:1:0: [sda] tag#0 Sense Key : Medium Error [current]",), "kernel.disk", Fault.DISK_ERRORS),
    (("md/raid1:md0: Disk failure on sda2, disabling device.",), "kernel.disk", Fault.DISK_ERRORS),
    (("md/raid:md0: Cannot continue operation (2/4 failed).",), "kernel.disk", Fault.ARRAY_FAILED),
    (("md: kicking non-fresh sda2 from array!", "md/raid1:md0: active with 1 out of 2 mirrors"), "kernel.disk",
     Fault.DISK_ERRORS),
    (("md: kicking non-fresh sda2 from array!", "md/raid:md0: raid level 5 active with 3 out of 4 devices"),
     "kernel.disk", Fault.DISK_ERRORS),
    (("WARNING: Pool 'tank' has encountered an uncorrectable I/O failure and has been suspended.",),
     "kernel.file-system", Fault.FILE_SYSTEM_READ_ONLY),
    (("EXT4-fs error (device sda2): ext4_lookup:1785: inode #2: comm ls: bad",), "kernel.file-system",
     Fault.FILE_SYSTEM),
    # Linux fs/ext4/super.c, at each mount and once a day until fsck has run
    *(((f"EXT4-fs (sda2): {words}",), "kernel.file-system", Fault.FILE_SYSTEM) for words in (
        "error count since last fsck: 3", "warning: mounting fs with errors, running e2fsck is recommended")),
    (("EXT4-fs (sda2): Remounting filesystem read-only",), "kernel.file-system", Fault.FILE_SYSTEM_READ_ONLY),
    (("BTRFS info (device sda1 state E): forced readonly",), "kernel.file-system", Fault.FILE_SYSTEM_READ_ONLY),
    (("EXT4-fs (sda2): Delayed block allocation failed for inode 12 at logical offset 0 with max blocks 2048 with error"
      " 28", "EXT4-fs (sda2): This should not happen!! Data will be lost"), "kernel.file-system", Fault.FILE_SYSTEM),
    (("Aborting journal on device sda2-8.",), "kernel.file-system", Fault.FILE_SYSTEM),
    (("Aborting journal on device dm-0-8.",), "kernel.file-system", Fault.FILE_SYSTEM),
    (("XFS (dm-0): Metadata corruption detected at xfs_dir3_block_read_verify+0x5e/0x110 [xfs], xfs_dir3_block",),
     "kernel.file-system", Fault.FILE_SYSTEM),
    *(((f"XFS (dm-0): {words} detected at xfs_trans_read_buf_map+0x9c/0x2d0",), "kernel.file-system", Fault.FILE_SYSTEM)
      for words in ("Metadata I/O Error (0x1)", "Corruption of on-disk metadata (0x8)", "Block device removal (0x20)")),
    *(((f"XFS (dm-4): {words}",), "kernel.file-system", Fault.FILE_SYSTEM_READ_ONLY) for words in (
        "Log I/O Error Detected.  Shutting down filesystem",
        "xfs_do_force_shutdown(0x1) called from line 1788 of file fs/xfs/xfs_inode.c.  Return address = 000000009d",
        "Corruption of in-memory data (0x8) detected at xfs_defer_finish_noroll+0x3f9/0x5d0 (fs/xfs/libxfs/xfs_defer.c:"
        "578).  Shutting down filesystem.")),
    (("BTRFS error (device sda1 state EA): parent transid verify failed",), "kernel.file-system", Fault.FILE_SYSTEM),
    (("nfs: server 10.1.2.3 not responding, still trying",), "kernel.file-system", Fault.FILE_SERVER),
    (("nvme nvme6: starting error recovery", "nvme nvme6: Reconnecting in 10 seconds..."), "kernel.file-system",
     Fault.FILE_SERVER),
    (("Lustre: scratch-OST0003-osc-ffff9a1: Connection to scratch-OST0003 (at 10.0.0.1@o2ib) was lost; in progress"
      " operations using this service will wait for recovery to complete",), "kernel.file-system", Fault.FILE_SERVER),
    (("ata1.00: exception Emask 0x10 SAct 0x40000 SErr 0x400100 action 0x6 frozen",), "kernel.disk",
     Fault.DISK_ERRORS),
    (("ata5: COMRESET failed (errno=-16)", "ata5: reset failed, giving up"), "kernel.disk", Fault.DISK_ERRORS),
    (("megaraid_sas 0000:04:00.0: Found FW in FAULT state, will reset adapter scsi0.",), "kernel.disk",
     Fault.RAID_ALARM),
    (("megaraid_sas 0000:04:00.0: 5188 (612345678s/0x0001/CRIT) - VD 00/0 is now DEGRADED",), "kernel.disk",
     Fault.RAID_ALARM),
    (("VFS: file-max limit 65536 reached",), "kernel.out-of-memory", Fault.OUT_OF_FILES),
    *(((line,), "kernel.out-of-memory", Fault.NETWORK_TABLE_FULL) for line in (
        "neighbour: arp_cache: neighbor table overflow!", "nf_conntrack: nf_conntrack: table full, dropping packet",
        "nf_conntrack: nf_conntrack: table full in netns 4026531840, dropping packet")),
    (("mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 6: be00000000000e0b",), "kernel.machine-check",
     Fault.AER_UNCORRECTABLE),
    (('irq 16: nobody cared (try booting with the "irqpoll" option)', "handlers:", "Disabling IRQ #16"),
     "kernel.hung-task", Fault.INTERRUPT_OFF),
    *(((line,), "kernel.machine-check", Fault.MACHINE_CHECK) for line in (
        "mce: CMCI storm detected: switching to poll mode", "CPU12 BANK7 CMCI storm detected",
        "iommu ivhd0: AMD-Vi: Event logged [COMMAND_HARDWARE_ERROR address=0x100 flags=0x0000]",
        "AMD-Vi: Event logged [PAGE_TAB_HARDWARE_ERROR device=41:00.0 domain=0x0021 address=0x100 flags=0x0000]")),
    # the host
    ((_HUNG, "Call Trace:", _FRAME), "kernel.driver-stuck", Fault.DRIVER_STUCK),
    (("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [nv_queue:812]",
      "RIP: 0010:_nv012345rm+0x1c/0x60 [nvidia]"), "kernel.driver-stuck", Fault.DRIVER_STUCK),
    (("nvidia-modeset: ERROR: GPU:1: Error while waiting for GPU progress: 0x0000cb7d:0 2:0:4048:4040",),
     "kernel.driver-stuck", Fault.DRIVER_STUCK),
    # kubevirt/kubevirt issue 8549
    ((f"NVRM: Attempting to remove device {GPU} with non-zero usage count!",), "kernel.driver-stuck",
     Fault.DRIVER_STUCK),
    (("tsc: Marking TSC unstable due to clocksource watchdog",), "host.clock-source", Fault.CLOCK_SOURCE),
    (("clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable because the skew is too large:",
      "clocksource: Switched to clocksource hpet"), "host.clock-source", Fault.CLOCK_SOURCE),
    (("nvidia 0000:06:00.0: swiotlb buffer is full (sz: 2097152 bytes), total 262144 (slots), used 261889 (slots)",),
     "kernel.out-of-memory", Fault.BOUNCE_BUFFERS),
    ((_HUNG,), "kernel.hung-task", Fault.TASKS_HUNG),
    ((_HUNG, "Call Trace:", " mlx5_unload_one+0x31/0x90 [mlx5_core]"), "kernel.hung-task", Fault.TASKS_HUNG),
    (("ipmi_si IPI0001:00: There appears to be no BMC at this location",), "kernel.bmc", Fault.BMC_SILENT),
    (("ipmi_si: There appears to be no BMC at this location",), "kernel.bmc", Fault.BMC_SILENT),
    (("ipmi_si dmi-ipmi-si.0: Interface detection failed",), "kernel.bmc", Fault.BMC_SILENT),
    (("ipmi_si IPI0001:00: Unable to get the device id: -5",), "kernel.bmc", Fault.BMC_SILENT),
    (("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3",), "kernel.hung-task", Fault.TASKS_HUNG),
    (("watchdog: CPU4: Watchdog detected hard LOCKUP on cpu 4",), "kernel.hung-task", Fault.TASKS_HUNG),  # Linux 6.11
    (("rcu: INFO: rcu_sched self-detected stall on CPU",), "kernel.hung-task", Fault.TASKS_HUNG),
    (("BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:812]",), "kernel.hung-task", Fault.TASKS_HUNG),
    (("Kernel panic - not syncing: Fatal hardware error!",), "kernel.panic", Fault.KERNEL_PANIC),
    (("BUG: unable to handle page fault for address: ffffb0c0", "Oops: 0000 [#1] PREEMPT SMP NOPTI",
      "RIP: 0010:nv_pci_remove+0x1c/0x60 [nvidia]"), "kernel.panic", Fault.KERNEL_PANIC),
    (("BUG: kernel NULL pointer dereference, address: 0000000000000008",), "kernel.panic", Fault.KERNEL_PANIC),
    (("Unable to handle kernel paging request at virtual address ffff800011", "pc : nvidia_poll+0x1c/0x60 [nvidia]"),
     "kernel.panic", Fault.KERNEL_PANIC),
    (("general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",), "kernel.panic",
     Fault.KERNEL_PANIC),
    (("kernel BUG at mm/slub.c:305!",), "kernel.panic", Fault.KERNEL_PANIC),
    (("Out of memory: Killed process 4711 (python3) total-vm:1kB",), "kernel.out-of-memory", Fault.OUT_OF_MEMORY),
    (("Out of memory: Killed process 4712 (nv-fabricmanage) total-vm:1kB",), "kernel.out-of-memory",
     Fault.SERVICE_KILLED),
    (("nv-hostengine[812]: segfault at 0 ip 00007f1d2c3e sp 00007ffd error 4 in libdcgm.so.4[7f1d2c000000+1000]",),
     "kernel.program-crash", Fault.SERVICE_KILLED),
    (("traps: nv-hostengine[812] general protection fault ip:7f1d2c3e sp:7ffd error:0 in libdcgm.so.4[7f1d2+1]",),
     "kernel.program-crash", Fault.SERVICE_KILLED),
)  # fmt: skip
"""Messages that follow each other within a tenth of a second."""

UNJUDGED: tuple[Lines, ...] = (
    ("EXT4-fs (sda2): Delayed block allocation failed for inode 12 at logical offset 209 with max blocks 9 with error"
     " 122",),  # beyond a quota
    ("mlx5_core 0000:02:00.0 enp2s0f0: Link down",),  # once
    (f"mlx5_core {HCA} mlx5_0: Port: 1 Link DOWN",),
    ("ixgbe 0000:02:00.0 enp2s0f0: NIC Link is Down",),
    ("tg3 0000:02:00.0 enp2s0f0: Link is down",),
    ("ipmi_si IPI0001:00: There appears to be no BMC at this location",
     "ipmi_ssif i2c-IPI0001:06: IPMI message handler: Found new BMC (man_id: 0x00b3d1, prod_id: 0x0001, dev_id: 0x20)"),
    ("ipmi_ssif i2c-IPI0001:06: Unable to get the device id: -5", "ipmi_si IPI0001:00: KCS in invalid state 6",
     "ipmi_si IPI0001:00: interfacing existing BMC (man_id: 0x00b3d1, prod_id: 0x0001, dev_id: 0x20)"),
    (f"{_MLX5}Port module event: module 0, Cable unplugged",),
    (f"NVRM: Attempting to remove device {GPU} with non-zero usage count!",
     f"NVRM: Continuing with GPU removal for device {GPU}"),
    (f"pcieport {NOWHERE}: pciehp: Slot(7): Card present",
     f"pcieport {NOWHERE}: Data Link Layer Link Active not set in 1000 msec",
     f"pcieport {NOWHERE}: pciehp: Slot(7): Link Up"),
    (f"pcieport {PORT}: Data Link Layer Link Active not set in 1000 msec",),  # its GPU is there
    (f"nvidia {GPU}: not ready 1023ms after bus reset; waiting", f"nvidia {GPU}: ready 2047ms after bus reset"),
    (f"NVRM: GPU {GPU} is already bound to NovaCore.",),  # and NVML lists it now
    (f"NVRM: GPU {NOWHERE} is already bound to vfio-pci.",
     "NVRM: The NVIDIA probe routine was not called for 1 device(s)."),
    (f"nouveau {GPU}: gr: init failed, -110",),
    ("pcieport 0000:00:02.0: pciehp: Slot(5): Link Down/Up ignored (recovered by DPC)",),
    ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05",),
    ("nvidia-nvlink: Nvlink Core is being initialized, major device number 234",),
    ("NVRM: The NVIDIA probe routine failed for 1 device(s).",),
    (f"nvidia {GPU}: enabling device (0140 -> 0142)",),
    (f"nvidia-modeset: Allocated GPU:0 (GPU-0c8e7d6f) @ PCI:{GPU}",),
    ("NVRM: API mismatch: the client has the version 535.1, but",),
    ("nvidia-nvswitch: Version mismatch, kernel version 580.105.08 user version 580.95.05",),
    ("Loading of unsigned module is rejected",),
    ("Loading of module with unavailable key is rejected",),
    ("Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",),
    (f"pci {NOWHERE}: BAR 1: no space for [mem size 0x2000000000 64bit pref]",),
    (f"pci {NOWHERE}: BAR 1 [mem size 0x400000000 64bit pref]: can't assign; no space",),
    # lore.kernel.org: what follows "no space", also where its driver is bound
    (f"pci {NOWHERE}: BAR 1: failed to assign [mem size 0x80000000]",),
    # HeyMeco/Rockchip-pcie-devices issue 2
    (f"pci {NOWHERE}: BAR 1 [mem size 0x10000000 64bit pref]: failed to assign",),
    # NVIDIA/open-gpu-kernel-modules issue 1187; it counts as Xid 8
    ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7",),
    (f"pci {NOWHERE}: [10de:2204] type 00 class 0x030000 PCIe Legacy Endpoint",),
    (f"pci {NOWHERE}: BAR 1: assigned [mem 0x3800000000-0x3fffffffff 64bit pref]",),
    (f"pci {NOWHERE}: BAR 1 [mem 0x3800000000-0x3fffffffff 64bit pref]: assigned",),
    (f"{_MLX5}Port module event: module 0, Cable plugged",),
    (f"{_MLX5}firmware version: 12.28.2006",),
    (f"{_MLX5}mlx5_health_try_recover:335:(pid 9): health recovery succeeded",),
    (f"mce: {_HE}Machine check events logged",),
    ("nfs: server 10.1.2.3 not responding, still trying", "nfs: server 10.1.2.3 OK"),
    ("nvme nvme0: pci function 0000:04:00.0",
     "AMD-Vi: Event logged [IO_PAGE_FAULT device=04:00.0 domain=0x0021 address=0xfe000000 flags=0x0000]"),
    ("nvme nvme6: Reconnecting in 10 seconds...", "nvme nvme6: Successfully reconnected (attempt 2/60)"),
    ("Lustre: 4711:0:(client.c:2340:ptlrpc_expire_one_request()) scratch-OST0003-osc-ffff9a1: Connection to"
     " scratch-OST0003 (at 10.0.0.1@o2ib) was lost; in progress operations using this service will wait",
     "Lustre: scratch-OST0003-osc-ffff9a1: Connection restored to 10.0.0.1@o2ib (at 10.0.0.1@o2ib)"),
)
"""Lines that other lines or other facts are needed for."""


def with_log(machine: Box, lines: Lines) -> Box:
    """The box with this kernel log, read from what dmesg prints."""
    log = times("".join(f"[{100 + number / 20:12.6f}] {text}\n" for number, text in enumerate(lines)))
    assert log is not None
    return replace(machine, snapshot=replace(machine.snapshot, kernel_log=facts(relevant_lines(log), "/dev/kmsg")))
