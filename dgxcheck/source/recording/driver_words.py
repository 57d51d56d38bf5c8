"""Words of the drivers' own messages and of kernel parameters.

A host may have any of them for its name; what is read out of a message must not depend on that.
"""

from __future__ import annotations

import re
from functools import cache

from dgxcheck.kernel_messages.forms import FORMS

_BESIDE = frozenset(
    """
    acsviol activate active adapter addr address agent all allowed always and anon anyway apei apic area async
    atomicopblocked auto back baddllp badtlp because begins begun bit blockedtlp boot bridge build but call cannot
    caused ch chan changed channel channel_mask clearing cmpltabrt cmpltto column commands complete constraint
    constraint_none contained correctable corrected corrinterr could count cpu_srcid cpuset csts ctx current dbe
    deprecated detect devices dimm directory dirty disabled dlp dlreq domain double dynamic earlier ecrc egress enable
    enabled encoding endpoint engine engmask err_code error_type errors errorstring esr executing expected fabric
    falling fbhub fcp fecc flags force fru_text function future generic gfp_highuser_movable gfp_mask gfw gfw_boot
    global_oom gpc gpus gr0 grain graphics gsp_rm_control halt head header headerof hidden host_thermal_event_start
    illegal include inexact ingress initialize initializing injected inode instead instruction interrupt interrupts
    invoked ipmi_si isolated jan killed killer knvlinkupdatepostrxdetectlinkmask_impl layer lblock level libdcgm links
    linux location log lost lru lsb ltc ltssm madvise major make malformed malftlp managed_irq marked mask mcu
    mem_multicast_fabric mems_allowed microcode minion minor misc miss mlx mlx5_init_one mlx5_load_one mmu mode msi
    name native_safe_halt netir_link_down netir_link_evt never new noats node nodemask none nonfatal nonfatalerr nopt
    novacore number nv_err_fabric_state_out_of_sync nvcheckokfailednolog nvidia_open occurred offset oom oom_score_adj
    order os_acquire_rwlock_write overflow page pages pci_status pcie_fatal_timeout pciebus peer pending performing
    persiste persistence persistenced pgtables physical please pmu poison poisontlpblocked poll_health posted
    postrxdetlinkmask previous print_health_info priv probe_one prochot progress pt pti range rank rate rcvr reading
    reboot receiver recorded recovered reg relaxed release remapped remapper remapping removed replay required
    response retired retirement returned rlw_src_track rollover row rpc rpc_wait_bit_killable rss rst runlist rxerr
    rxof sbe scrubbing sda sdc sdes section_type shmem short single slice sm smi smp source sourcetrack start started
    stopped strict subordinate subsystem successful sunrpc supervisor sure surprise switch syndrome tainted taints
    task_memcg that throttle thu tlp tlpblockederr topology tpc trace training transaction transceiver transmitter
    tree tsc type uncontained uncorrectable uncorrinterr uninitialized unmasked unplugged unrecovered unregistered
    unsupportedreq unsupreq unxcmplt update utc vbios vfio virtual wait wait_func waiting warp were wire x86_64 yes
    """.split()  # noqa: SIM905 -- hundreds of quoted words are no easier to read
)
"""Lower case; of lines beside those that are read, and of parts of them that no form names."""
_SYNTAX = re.compile(r"\(\?P<\w+>|\\[a-zA-Z]|(?<!\\)\[[^]]*\]|\\")
_NUMBER = re.compile("[0-9a-f]+")


def is_word(name: str) -> bool:
    """Is this a word of the log, or may it be part of a number in it, such as a bus id?"""
    return name.lower() in _words() or (len(name) < 8 and _NUMBER.fullmatch(name.lower()) is not None)


@cache
def _words() -> frozenset[str]:
    """All of them: those that a form of the log looks for, and others."""
    literals = (_SYNTAX.sub("|", form.expression) for form in FORMS)
    return _BESIDE.union(word.lower() for text in literals for word in re.findall(r"[A-Za-z]\w+", text))
