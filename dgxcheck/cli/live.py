"""Which machine a command speaks of: the source that its options name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from dgxcheck.source.live import LiveSource
    from dgxcheck.source.protocol import Source
    from dgxcheck.workers.nvml import NvmlStage


class Live:
    """The running machine, opened when a command does not say ``--from``; it ends its workers."""

    def __init__(self, root: str, stage: NvmlStage | None) -> None:
        self._root = root
        self._stage = stage
        self._opened: LiveSource | None = None

    def source(self, spec: str | None, groups: Sequence[str], deadline: float) -> Source:
        """What ``--from`` names, else this machine with NVML's ``groups`` asked within ``deadline`` seconds."""
        if spec is not None:
            from dgxcheck.source.library import open_source

            return open_source(spec)
        from dgxcheck.source.live import LiveSource

        self._opened = LiveSource(self._root, groups, deadline, self._stage)
        return self._opened

    def close(self) -> None:
        """End every worker that was started for this command."""
        if self._opened is not None:
            self._opened.close()
        if self._stage is not None:
            self._stage.stop()
