"""Words of the drivers' own messages and of kernel parameters.

A host may have any of them for its name; what is read out of a message must not depend on that.
"""

from __future__ import annotations

import re

WORDS = frozenset(
    """
    able above access acsviol action active adapter addr address aer after agent all allowed always and apei api
    apic area async at atomicopblocked attention auto available baddllp badtlp bank been begins begun being bit
    blk_update_request block blocked blockedtlp boot bridge buffer bug bus but button by cable cables can cannot
    card caused ch chan changed channel channel_mask check client clock cmd cmpltabrt cmpltto code column command
    commands compromised connected contained controller core correct correctable corrected corrinterr could count
    cpu cpu_srcid critical csts ctx current data dbe detected dev device dimm dirty disabled disabling disk dlp
    dlreq does domain double down dram driver due dynamic earlier ecc ecrc edac egress enabled enabling encoding
    engine engmask err_code error errors errorstring esr event events exception executing expected fabric failed
    failure fallen fatal fault fbhub fcp fecc firmware first flags flow for force found from fru_text function
    generic gpc gpu gpus gr0 grain graphics gsp gsp_rm_control halt hard hardware has have head header headerof
    health high host host_thermal_event_start id illegal in inexact info ingress initialized initializing injected
    installed instruction insufficient internal interrupt intr is isolated jan kernel key killing layer limit link
    links linux load loading location lockup log logged logical lost lru lsb ltssm machine madvise major make
    malformed malftlp managed_irq mask mc mce mcu md medium memory message microcode minion minor misc mismatch miss
    mlx mlx5 mlx5_core mlx5_init_one mlx5_load_one mmu module modules more multiple name native_safe_halt necessary
    netir_link_down never new nmi noats node non none nonfatal nonfatalerr nopt northbridge not number nvidia
    nvidia_open nvlink nvme nvrm nvswitch occurred of off offset on one open os_acquire_rwlock_write out overflow
    package page pages pci pci_status pcie pciebus pciehp pcieport peer pending physical pid please plugged pmu
    poison poisontlpblocked poll_health port posted power powering present press pressed previous priv probe
    probe_one process processor prochot protection pt raid range rank rate rcvr reached read reboot received
    receiver recorded recover recovered recovery reg relaxed remap remapped remapper remapping removed removing
    replay required reset responding response retired retirement rip rm_init_adapter rminitadapter rollover routine
    row rpc rst runlist rxerr rxof sbe scrubbing sda sdc sdes seconds section_type sector sending sense sensors
    severity short sigbus slot sm smi socket soft source sourcetrack started status stopped strict stuck subsystem
    successful sure surprise switch sxid syndrome system tag task temperature than that the this threshold throttle
    throttled thu time timeout tlp tlpblockederr to topology total tpc training transaction transceiver transmitter
    tsc type uncontained uncorrectable uncorrected uncorrinterr unified uninitialized unix unknown unplugged
    unrecovered unregistered unsupported unsupportedreq unsupreq unxcmplt up user utc version waiting warp watchdog
    will with write x86_64 xid
    """.split()  # noqa: SIM905 -- three hundred quoted words are no easier to read
)
"""Lower case."""
_NUMBER = re.compile("[0-9a-f]+")


def is_word(name: str) -> bool:
    """Is this a word of the log, or may it be part of a number in it, such as a bus id?"""
    return name.lower() in WORDS or (len(name) < 8 and _NUMBER.fullmatch(name.lower()) is not None)
