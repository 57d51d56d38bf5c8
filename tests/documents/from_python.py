"""The verdict, what is to blame, and a burn-in that reports its events as they happen."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.assessment import Assessment, Progress, Request, assess, examine


class Events(Progress):
    """Print what happens during a burn-in."""

    def burn_in_event(self, members: Mapping[str, object]) -> None:
        if members["event"] != "sample":
            print(members["under_load_s"], members["event"], members["text"])


def burn_in(hours: float) -> Assessment:
    """Put all GPUs of this machine under load, and judge it."""
    return assess(request=Request(duration=3600 * hours), progress=Events())


def show(assessment: Assessment) -> None:
    """Print each component to blame, with the findings that it explains."""
    for cause in assessment.causes:
        print(assessment.verdict.value, cause.component.name, cause.component.bdf)
        for finding in assessment.explained(cause):
            print(" ", finding.id, finding.status.value)


if __name__ == "__main__":
    show(assess("dgx-1-v100-hot"))
    topology = examine("dgx-1-v100").topology
    a, b = topology.gpus[0], topology.gpus[3]
    print(a.name, topology.link(a, b).label, b.name)
