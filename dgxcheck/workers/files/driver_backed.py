"""Files behind which a driver stands: they are read in a worker, whole directories of counters at a time."""

from __future__ import annotations

_PORT = "/sys/class/infiniband/*/ports/*"
_OF_A_PORT = ("state", "phys_state", "rate", "link_layer", "lid", "sm_lid", "counters/*", "hw_counters/*")
PORTS = tuple(f"text {_PORT}/{name}" for name in _OF_A_PORT)
"""Asked together as soon as one of them is wanted; ``*`` stands for one path component."""


def driver_backed(path: str) -> bool:
    """Does reading this file run driver code that can hang?

    Port attributes query the HCA's firmware, ``speed`` asks the Ethernet driver, ``/proc/driver`` and device nodes are
    the GPU driver's own, and ``config`` beyond what the kernel caches, as ``vpd``, goes out
    on the bus.
    """
    return (
        (path.startswith("/sys/class/infiniband/") and "/ports/" in path)
        or (path.startswith("/sys/class/net/") and path.endswith("/speed"))
        or path.startswith("/proc/driver/")
        or (path.startswith("/dev/") and path != "/dev/kmsg")  # printk's own buffer
        or (path.startswith("/sys/bus/pci/devices/") and path.endswith(("/config", "/vpd")))
    )


def questions_with(question: str) -> tuple[str, ...]:
    """The questions that are put along with this one, itself among them as one of their patterns or as it is."""
    if not question.startswith("text /sys/class/infiniband/"):
        return (question,)
    _, _, of_port = question.partition("/ports/")
    name = of_port.partition("/")[2]
    head, slash, _ = name.partition("/")
    return PORTS if (f"{head}/*" if slash else name) in _OF_A_PORT else (*PORTS, question)


def device_of(question: str) -> str:
    """The directory of the device behind a file: where one file hung, its neighbours are not asked.

    ``text /sys/class/infiniband/mlx5_1/ports/1/rate`` -> ``/sys/class/infiniband/mlx5_1``.
    """
    path = question.partition(" ")[2]
    parts = path.split("/")
    if path.startswith("/sys/class/"):
        return "/".join(parts[:5])
    return "/".join(parts[:6]) if path.startswith("/sys/bus/") else path
