"""Words of the drivers' own messages and of kernel parameters.

A host may have any of them for its name; what is read out of a message must not depend on that.
"""

from __future__ import annotations

import re

WORDS = frozenset(
    """
    able access active address adapter aer agent all allowed api available baddllp badtlp been begins boot bridge bus
    cable cables can cannot ch changed channel client cmpltabrt cmpltto code command compromised connected
    core corrected correctable could dbe detected device disabled does dlp driver ecc enabled enabling error errors
    event executing fabric failed failure fallen fatal fbhub fecc firmware first flow found from gpu gpus graphics gsp
    have non gr0 has health high host in info initialized initializing injected installed insufficient internal intr is
    kernel
    layer link links linux load loading lost lsb malftlp malformed mask mcu message mismatch mlx mlx5 mlx5_core mmu
    module modules multiple name necessary node none nonfatal not nvidia nvlink nvrm nvswitch occurred of off on one
    page pages pci pcie pciebus pcieport peer physical pid plugged poison port power pmu probe process prochot
    protection rcvr receiver recover recovery remapped remapping removed replay reset responding retired retirement
    rollover row runlist sbe sensors severity slot stopped strict subsystem successful surprise sxid system temperature
    the this throttle timeout tlp to topology transaction transceiver type uncontained uncorrectable uncorrected
    uninitialized unix unknown unplugged unrecovered unsupported unsupportedreq version watchdog with x86_64 xid
    acsviol and at atomicopblocked begun being bit blockedtlp but cmd commands corrinterr double dynamic earlier ecrc
    encoding engine engmask esr exception fault fcp for gpc headerof id illegal instruction jan log major make minor
    mlx5_init_one mlx5_load_one new nonfatalerr number open out pending please poisontlpblocked probe_one range received
    recorded reg remap remapper rm_init_adapter rminitadapter routine rxerr rxof sdes sm started sure that thu
    tlpblockederr tpc uncorrinterr unregistered unsupreq unxcmplt utc warp
    pt force soft noats nopt relaxed auto madvise always never isolated managed_irq domain
    """.split()  # noqa: SIM905 -- two hundred quoted words are no easier to read
)
"""Lower case."""
_NUMBER = re.compile("[0-9a-f]+")


def is_word(name: str) -> bool:
    """Is this a word of the log, or may it be part of a number in it, such as a bus id?"""
    return name.lower() in WORDS or (len(name) < 8 and _NUMBER.fullmatch(name.lower()) is not None)
