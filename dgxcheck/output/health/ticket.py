"""``dgxcheck health --ticket``: what a vendor asks for first, as a text to paste into a case."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck import __version__
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Status
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.output.health import overview
from dgxcheck.output.health.causes import fru_lines, place, save_first, steps
from dgxcheck.output.health.finding_lines import sentence
from dgxcheck.output.health.instructions import confidence_text, recurrence_text
from dgxcheck.output.health.problem import problem
from dgxcheck.output.origin import source_line
from dgxcheck.output.plain_text import lines, visible, wrapped
from dgxcheck.output.report import HealthReport

_MOST_EVIDENCE = 5
_UNKNOWN = "not known here"


def render(report: HealthReport) -> str:
    """One case for each cause that fails or warns; versions and what to attach once."""
    assessment = report.assessment
    causes = [cause for cause in assessment.causes if cause.severity is not Status.UNKNOWN]
    if not causes:
        return lines([f"No ticket: no cause was found ({assessment.verdict.value})."])
    text_lines = [f"Machine: {overview.machine(assessment) or _UNKNOWN}"]
    text_lines += [f"{name}: {_text(value)}" for name, value in _versions(assessment)]
    text_lines += source_line(assessment.origin)
    for number, cause in enumerate(causes, 1):
        text_lines += ["", *_case(assessment, number, cause)]
    attached = [line.replace("Save first", "To attach (save it before the steps above)") for line in save_first(causes)]
    text_lines += ["", *attached] if attached else []
    return lines(wrapped(visible(line), report.width, 2) for line in text_lines)


def _versions(assessment: Assessment) -> Iterator[tuple[str, object]]:
    host, nvml = assessment.snapshot.host, assessment.snapshot.gpu
    yield "Host", assessment.host.get("host", "")
    if isinstance(host, Host):
        dmi = host.dmi
        yield "Model", dmi.product_name
        yield "Serial number", dmi.product_serial
        yield "System firmware", dmi.bios_version
        yield "Kernel", host.kernel_release
        yield "Operating system", host.os_release.get("PRETTY_NAME", "") if isinstance(host.os_release, dict) else ""
    if isinstance(nvml, Nvml):
        yield "NVIDIA driver", nvml.driver_version
    yield "dgxcheck", __version__


def _text(value: object) -> str:
    return f"{_UNKNOWN} ({value.reason})" if isinstance(value, Missing) else str(value) or _UNKNOWN


def _case(assessment: Assessment, number: int, cause: Cause) -> Iterator[str]:
    found = assessment.found
    yield f"Fault {number} ({cause.severity.value}): {problem(assessment, cause)}"
    yield f"  suspect: {place(cause.component)}; {confidence_text(cause.confidence)}"
    yield from (f"  {line}" for line in fru_lines([cause]))
    yield from (f"  VBIOS of {name}: {vbios}" for name, vbios in _vbios(assessment, cause))
    yield "  evidence:"
    for key in cause.explains[:_MOST_EVIDENCE]:
        yield f"    {sentence(found[key])}"
        yield from (f"      {item.where}: {item.value}" for item in found[key].judgement.evidence[:_MOST_EVIDENCE])
    yield f"  seen before: {recurrence_text(cause.recurrence)}" if cause.recurrence else "  seen before: not on record"
    yield "  tried (mark what was done):"
    yield from (f"    [ ] {line}" for line in steps(cause, found, verbose=True))


def _vbios(assessment: Assessment, cause: Cause) -> Iterator[tuple[str, str]]:
    bdfs = {unit.bdf for unit in cause.frus}
    for gpu in assessment.snapshot.listed_gpus:
        if gpu.bdf in bdfs and isinstance(gpu.vbios, str):
            yield shown(gpu.bdf) or "", gpu.vbios
