"""The application: everything between a machine and what is printed of it, and the public Python API.

``assess(source, request)`` judges a machine, ``examine(source)`` reads how it is wired; see PYTHON.md.
Names are imported when they are first used, so that a command loads only what it needs.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.assessment.health import assess
    from dgxcheck.assessment.machine import Machine, examine
    from dgxcheck.assessment.progress import Progress
    from dgxcheck.assessment.request import Level, Request
    from dgxcheck.assessment.result import Assessment
    from dgxcheck.facts.missing import BadInput, Missing

__all__ = ["Assessment", "BadInput", "Level", "Machine", "Missing", "Progress", "Request", "assess", "examine"]

_MODULES = {
    "assess": "dgxcheck.assessment.health", "Assessment": "dgxcheck.assessment.result",
    "BadInput": "dgxcheck.facts.missing", "Level": "dgxcheck.assessment.request",
    "Machine": "dgxcheck.assessment.machine", "examine": "dgxcheck.assessment.machine",
    "Missing": "dgxcheck.facts.missing", "Progress": "dgxcheck.assessment.progress",
    "Request": "dgxcheck.assessment.request",
}  # fmt: skip
"""Where each public name is defined; no module of this package has the name of one of them."""


if not TYPE_CHECKING:  # a type checker would take any name for one of these

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
