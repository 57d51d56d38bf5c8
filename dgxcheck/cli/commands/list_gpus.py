"""``dgxcheck list``: every GPU by all its names."""

from __future__ import annotations

import click

from dgxcheck.cli.live import Live
from dgxcheck.cli.options import emit, reading, width, writing
from dgxcheck.facts.gpu import Gpu
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output import gpu_list, provenance
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.build import build
from dgxcheck.topology.model import Device
from dgxcheck.topology.slots import slot_of


@click.command("list")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@reading
@writing
@click.pass_context
def command(ctx: click.Context, form: str, spec: str | None, deadline: float, output: str | None, color: str) -> int:
    """List the GPUs: index, bus id, name, UUID, serial number, slot, VBIOS.

    GPUs that appear only on the PCI bus come last, without an index. Exit code 0: the list is complete; 3: something is
    unknown, or the command could not run.
    """
    live: Live = ctx.obj
    source = live.source(spec, "IDENTITY", deadline)
    box = survey(source, ("pci", "gpu", "slots", "pci_names"))
    topology = build(box.pci, box.infiniband, box.gpu, box.nvlink, box.gpu_pairs, box.numa)
    rows = [_row(device, box) for device in topology.gpus]
    gaps = _gaps(rows)
    notes = [*topology.notes, *(f"{gap.where}: {gap}" for gap in gaps)]
    if form == "json":
        text = gpu_list.as_json(rows, notes, source.origin)
    else:
        text = gpu_list.text(rows, [*notes, *provenance.line(source.origin)], width(output))
    emit(text, output, color, form)
    unlisted = any(row.index is None for row in rows)
    return 3 if unlisted or topology.gaps or gaps else 0


def _row(device: Device, box: Snapshot) -> gpu_list.Row:
    listed: tuple[Gpu, ...] = () if isinstance(box.gpu, Missing) else box.gpu.gpus
    gpu = next((gpu for gpu in listed if gpu.bdf == device.bdf), None)
    gap = device.uuid if isinstance(device.uuid, Missing) else Missing(Gap.ABSENT, "nvmlDeviceGetHandleByIndex")
    return gpu_list.Row(
        index=device.index,
        bdf=device.bdf or "",
        name=_pci_name(device, box) if gpu is None else gpu.name,
        uuid=gap if gpu is None else gpu.uuid,
        serial=gap if gpu is None else gpu.serial,
        slot=slot_of(device, box.slots),
        vbios=gap if gpu is None else gpu.vbios,
    )


def _pci_name(device: Device, box: Snapshot) -> str | Missing:
    """What pci.ids calls a GPU that NVML does not name."""
    function = device.function
    if function is None or isinstance(function.vendor, Missing) or isinstance(function.device, Missing):
        return function.device if function and isinstance(function.device, Missing) else Missing(Gap.ABSENT, "pci.ids")
    if isinstance(box.pci_names, Missing):
        return box.pci_names
    return box.pci_names[f"{function.vendor:04x}:{function.device:04x}"]


def _gaps(rows: list[gpu_list.Row]) -> list[Missing]:
    """What a GPU that NVML lists should say and does not; what a board or chassis does not have is no gap."""
    found = []
    for row in rows:
        values = (row.name, row.uuid, row.serial, row.slot, row.vbios) if row.index is not None else ()
        found += [value for value in values if isinstance(value, Missing)]
    return [gap for gap in found if gap.gap not in (Gap.ABSENT, Gap.UNSUPPORTED)]
