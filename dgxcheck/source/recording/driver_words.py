"""Words of the drivers' own messages and of kernel parameters.

A host may have any of them for its name; what is read out of a message must not depend on that.
"""

from __future__ import annotations

import re

WORDS = frozenset(
    """
    able aborting above access access_reg acsviol action active adapter addr address aer after agent all allowed
    always amd and anon apei api apic area async at atomicopblocked attention auto available baddllp badtlp bank bar
    been begins begun being bit blk_update_request block blocked blockedtlp boot bridge buffer bug bus but button by
    cable cables call can cannot card cause caused ch chan change changed channel channel_mask check client clock
    cmd cmpltabrt cmpltto code column command commands compromised connected constraint constraint_none contained
    containment controller core correct correctable corrected corrinterr could count cpu cpu_srcid cpuset critical
    csts ctx current data dbe dereference detected dev device dimm directory dirty disabled disabling disk dlp dlreq
    does domain double down dpc dram driver due dynamic earlier ecc ecrc edac egress enabled enabling encoding
    engine engmask err_code error errors errorstring esr event events exception executing expected fabric failed
    failure fallen fatal fault fbhub fcp fecc file filesystem firmware first flags flow for force found from
    fru_text function generic gfp_highuser_movable gfp_mask global_oom gpc gpu gpus gr0 grain graphics gsp
    gsp_rm_control halt hard hardware has have head header headerof health high host host_thermal_event_start id
    illegal in inaccessible inexact info ingress initialized initializing injected inode installed instruction
    insufficient internal interrupt intr invoked io_page_fault is isheartbeattimedout isolated jan journal kernel
    key kill killed killer killing layer lblock leak libdcgm limit link links linux load loading location lockup log
    logged logical logrpctimeout lost lru lsb ltssm machine madvise major make malformed malftlp managed_irq mask mc
    mce mcu md medium memory mems_allowed message microcode minion minor misc mismatch miss mlx mlx5 mlx5_core
    mlx5_init_one mlx5_load_one mmu mode module modules more multiple name native_safe_halt necessary
    netir_link_down never new nfs nmi noats node nodemask non none nonfatal nonfatalerr nopt northbridge not null
    number nvidia nvidia_open nvlink nvme nvrm nvswitch occurred of off offset on one only oom oom_score_adj oops
    open order os_acquire_rwlock_write out overflow package page pages panic pci pci_status pcie pciebus pciehp
    pcieport peer pending persiste pgtables physical pid please plugged pmu pointer poison poisontlpblocked
    poll_health port posted power powering present press pressed previous priv probe probe_one process processor
    prochot protection pt pti raid range rank rate rcvr reached read reading reboot received receiver recorded
    recover recovered recovery reg relaxed remap remapped remapper remapping remounting removed removing replay
    required reset resource responding response retired retirement rip rm_init_adapter rminitadapter rollover
    routine row rpc rpc_wait_bit_killable rss rst runlist rxerr rxof sbe scrubbing sda sdc sdes seconds section_type
    sector sending sense sensors server severity shmem short sigbus slice slot sm smi smp socket soft source
    sourcetrack started state status still stopped strict stuck subsystem successful sunrpc supervisor sure surprise
    switch sxid syncing syndrome system tag tainted task task_memcg temperature than that the this threshold
    throttle throttled thu time timeout tlp tlpblockederr to topology total tpc trace training transaction
    transceiver transmitter trying tsc type uid unable uncontained uncorrectable uncorrected uncorrinterr unified
    uninitialized unix unknown unplugged unrecovered unregistered unsupported unsupportedreq unsupreq unxcmplt up
    user utc version wait_func waiting warp watchdog will with write x86_64 xid yes
    """.split()  # noqa: SIM905 -- three hundred quoted words are no easier to read
)
"""Lower case."""
_NUMBER = re.compile("[0-9a-f]+")


def is_word(name: str) -> bool:
    """Is this a word of the log, or may it be part of a number in it, such as a bus id?"""
    return name.lower() in WORDS or (len(name) < 8 and _NUMBER.fullmatch(name.lower()) is not None)
