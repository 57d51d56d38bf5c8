"""Colours of pictures and reports, light and dark; text on its background has the contrast of WCAG AA (4.5:1)."""

from __future__ import annotations

from collections.abc import Mapping

Colours = Mapping[str, str]
LIGHT: Colours = {
    "page": "#ffffff", "text": "#1b1d21", "faint": "#555b66", "edge": "#6b7280", "panel": "#f3f4f6",
    "panel-edge": "#b6bcc6", "bridge": "#e2e5ea", "switch": "#ffffff", "gpu": "#d9efc2", "gpu-edge": "#4d8a0f",
    "nic": "#cfe3f8", "nic-edge": "#2f6fae", "other": "#ece4f7", "other-edge": "#7552a8", "nvlink": "#4d8a0f",
    "fail": "#a81818", "fail-fill": "#fde4e1", "warn": "#7a4d00", "warn-fill": "#fdf0cf", "way": "#0b57a4",
    "way-fill": "#dbeafb", "better": "#1f6b2c", "better-fill": "#dff3e1",
}  # fmt: skip
DARK: Colours = {
    "page": "#15171b", "text": "#eceef2", "faint": "#b3bac6", "edge": "#9aa3b1", "panel": "#1f2329",
    "panel-edge": "#4a525f", "bridge": "#343b46", "switch": "#262b33", "gpu": "#28400f", "gpu-edge": "#8ccc3f",
    "nic": "#153a5e", "nic-edge": "#6fb1ef", "other": "#3a2a55", "other-edge": "#b698e6", "nvlink": "#8ccc3f",
    "fail": "#ff9a91", "fail-fill": "#4f1512", "warn": "#f5c451", "warn-fill": "#463206", "way": "#8cc4ff",
    "way-fill": "#123a63", "better": "#86d694", "better-fill": "#173d1f",
}  # fmt: skip
FILLS = {"panel": "panel", "host-bridge": "bridge", "switch": "switch", "gpu": "gpu", "nic": "nic", "other": "other",
         "bar": "gpu", "label": "panel", "caption": "page", "title": "panel"}  # fmt: skip
"""The colour behind the text of each kind of box."""
TONES = ("fail", "warn", "way", "better")
