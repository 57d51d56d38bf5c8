"""What ``dgxcheck topo --format svg`` and ``dot`` draw: the whole box, or the way between two of its devices."""

from __future__ import annotations

from dgxcheck.cli.topo.question import Asked, Known
from dgxcheck.cli.topo.whole_box import matrix
from dgxcheck.cli.topo.whole_box import path as path_of
from dgxcheck.output.topo import picture as topo_picture
from dgxcheck.output.topo.picture import wiring_marks


def whole(asked: Asked) -> Known:
    """Without a question, or ``--tree``: as complete as the matrix."""
    marks = wiring_marks(asked.topology)
    return topo_picture.render(asked.machine, asked.form, marks, asked.nvme), matrix(asked)[1]


def way(asked: Asked) -> Known:
    """``--path A B``."""
    from dgxcheck.cli.topo.devices import two_devices

    a, b = two_devices(asked.topology, asked.value)
    marks = [*wiring_marks(asked.topology), topo_picture.path_mark_of(asked.machine, a, b, asked.labels)]
    return topo_picture.render(asked.machine, asked.form, marks, asked.nvme), path_of(asked)[1]
