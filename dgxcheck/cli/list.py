"""``dgxcheck list``: every GPU by all its names."""

from __future__ import annotations

import click

from dgxcheck.cli.live import Live
from dgxcheck.cli.options import emit, reading, writing
from dgxcheck.facts.gpu import Gpu
from dgxcheck.output import gpu_list
from dgxcheck.reading import Gap, Missing
from dgxcheck.source.protocol import Source
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.build import bus_order, is_gpu


@click.command("list")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@reading
@writing
@click.pass_context
def command(ctx: click.Context, form: str, spec: str | None, deadline: float, output: str | None, color: str) -> int:
    """Every GPU: index, bus id, name, UUID, serial, slot, VBIOS.

    GPUs that only the PCI tree shows come last, without an index. Exit code 3 where something is not known.
    """
    live: Live = ctx.obj
    source = live.source(spec, "IDENTITY", deadline)
    box = survey(source, ("pci", "gpu", "slots"))
    rows = _rows(box, source)
    notes = _notes(box, rows)
    text = gpu_list.as_json(rows, notes, source.origin) if form == "json" else gpu_list.text(rows, notes)
    emit(text, output, color)
    return 3 if notes else 0


def _rows(box: Snapshot, source: Source) -> list[gpu_list.Row]:
    listed = () if isinstance(box.gpu, Missing) else box.gpu.gpus
    rows = [_listed(gpu, box) for gpu in listed]
    known = {gpu.bdf for gpu in listed}
    functions = () if isinstance(box.pci, Missing) else box.pci
    others = sorted((f for f in functions if is_gpu(f) and f.bdf not in known), key=lambda f: bus_order(f.bdf))
    for function in others:
        key = f"{function.vendor:04x}:{function.device:04x}" if isinstance(function.device, int) else "10de"
        gap = Missing(Gap.ABSENT, "nvmlDeviceGetHandleByIndex", "NVML does not list this GPU")
        name, slot = source.name("pci", key), _slot(box, function.bdf)
        rows.append(
            gpu_list.Row(index=None, bdf=function.bdf, name=name, uuid=gap, serial=gap, slot=slot, vbios=gap)
        )
    return rows


def _listed(gpu: Gpu, box: Snapshot) -> gpu_list.Row:
    return gpu_list.Row(
        index=gpu.index,
        bdf=gpu.bdf,
        name=gpu.name,
        uuid=gpu.uuid,
        serial=gpu.serial,
        slot=_slot(box, gpu.bdf),
        vbios=gpu.vbios,
    )


def _slot(box: Snapshot, bdf: str) -> str | Missing:
    if isinstance(box.slots, Missing):
        return box.slots
    absent = Missing(Gap.ABSENT, "/sys/bus/pci/slots", "the firmware names no slot for this GPU")
    return next((slot.name for slot in box.slots if bdf.startswith(f"{slot.address}.")), absent)


def _notes(box: Snapshot, rows: list[gpu_list.Row]) -> list[str]:
    """Why something is not known; a board without serial or a chassis without slot names is no gap."""
    if isinstance(box.gpu, Missing):
        return [f"NVML: {box.gpu}"] if rows or box.gpu.gap is not Gap.ABSENT else []
    notes = [f"NVML: {gap.where}: {gap}" for gap in box.gpu.lost]
    if isinstance(box.gpu.count, Missing):
        notes.append(f"NVML: {box.gpu.count.where}: {box.gpu.count}")
    notes += [f"{row.bdf}: {row.uuid.detail}" for row in rows if row.index is None and isinstance(row.uuid, Missing)]
    quiet = (Gap.ABSENT, Gap.UNSUPPORTED)
    for row in rows:
        values = (row.name, row.uuid, row.serial, row.vbios) if row.index is not None else ()
        gaps = [value for value in values if isinstance(value, Missing) and value.gap not in quiet]
        notes += [f"{gap.where}: {gap}" for gap in gaps]
    return notes
