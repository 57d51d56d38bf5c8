"""Which machine a command speaks of: the source that its options name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.source.live import LiveSource
    from dgxcheck.source.protocol import Source
    from dgxcheck.workers.nvml.supervisor import NvmlStage


class Live:
    """The running machine, opened when a command does not say ``--from``; it ends its workers."""

    def __init__(self, root: str, stage: NvmlStage | None) -> None:
        self.root = root
        """Where the running machine's files are."""
        self._stage = stage
        self._opened: LiveSource | None = None

    def source(self, spec: str | None, plan: str, deadline: float, *more: str) -> Source:
        """What ``--from`` names, else this machine, its driver asked within ``deadline`` seconds.

        ``plan`` is a tuple of ``workers/nvml/plan.py`` by name, ``more`` are groups beside those.
        """
        if spec is not None:
            from dgxcheck.source.recording.shipped import open_source

            return open_source(spec)
        from dgxcheck.source.live import LiveSource
        from dgxcheck.workers.nvml import plan as nvml_plan

        groups: tuple[str, ...] = getattr(nvml_plan, plan)
        self._opened = LiveSource(self.root, (*groups, *more), deadline, self._stage)
        return self._opened

    def close(self) -> None:
        """End every worker that was started for this command."""
        if self._opened is not None:
            self._opened.close()
        if self._stage is not None:
            self._stage.stop()
