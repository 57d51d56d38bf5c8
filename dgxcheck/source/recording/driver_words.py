"""Words of the drivers' own messages and of kernel parameters.

A host may have any of them for its name; what is read out of a message must not depend on that.
"""

from __future__ import annotations

import re

WORDS = frozenset(
    """
    able access acsviol action active adapter address aer after agent all allowed always and api at atomicopblocked
    auto available baddllp badtlp been begins begun being bit blockedtlp boot bridge bus but cable cables can cannot
    ch changed channel client cmd cmpltabrt cmpltto code command commands compromised connected contained core
    correctable corrected corrinterr could dbe detected device disabled dlp dlreq does domain double driver dynamic
    earlier ecc ecrc enabled enabling encoding engine engmask error errors esr event exception executing expected
    fabric failed failure fallen fatal fault fbhub fcp fecc firmware first flow for force found from function gpc
    gpu gpus gr0 graphics gsp gsp_rm_control halt has have head header headerof health high host
    host_thermal_event_start id illegal in info ingress initialized initializing injected installed instruction
    insufficient internal interrupt intr is isolated jan kernel layer limit link links linux load loading log lost
    lsb ltssm madvise major make malformed malftlp managed_irq mask mcu message minion minor mismatch mlx mlx5
    mlx5_core mlx5_init_one mlx5_load_one mmu module modules multiple name necessary never new noats node non none
    nonfatal nonfatalerr nopt not number nvidia nvlink nvrm nvswitch occurred of off on one open out page pages pci
    pcie pciebus pcieport peer pending physical pid please plugged pmu poison poisontlpblocked port power probe
    probe_one process prochot protection pt range rcvr reboot received receiver recorded recover recovery reg
    relaxed remap remapped remapper remapping removed replay required reset responding response retired retirement
    rm_init_adapter rminitadapter rollover routine row rpc rst runlist rxerr rxof sbe sdes sensors severity slot sm
    soft started stopped strict subsystem successful sure surprise sxid system temperature that the this throttle
    thu timeout tlp tlpblockederr to topology tpc training transaction transceiver type uncontained uncorrectable
    uncorrected uncorrinterr uninitialized unix unknown unplugged unrecovered unregistered unsupported
    unsupportedreq unsupreq unxcmplt utc version waiting warp watchdog with x86_64 xid
    """.split()  # noqa: SIM905 -- two hundred quoted words are no easier to read
)
"""Lower case."""
_NUMBER = re.compile("[0-9a-f]+")


def is_word(name: str) -> bool:
    """Is this a word of the log, or may it be part of a number in it, such as a bus id?"""
    return name.lower() in WORDS or (len(name) < 8 and _NUMBER.fullmatch(name.lower()) is not None)
