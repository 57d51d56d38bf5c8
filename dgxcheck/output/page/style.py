"""How an HTML report looks: colours of the pictures, heat maps by measured / expected; paper is light."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.output.picture.shapes import DARK, LIGHT, Colours

HEAT: tuple[tuple[float, str], ...] = ((0.98, "h5"), (0.9, "h4"), (0.75, "h3"), (0.5, "h2"), (0.0, "h1"))
"""Least share of each class; the lowest has all that is below."""
HEAT_LIGHT: Mapping[str, str] = {
    "h5": "#bfe8b4", "h4": "#e1f3c6", "h3": "#fdf0bd", "h2": "#fdd3a8", "h1": "#fbcfca", "none": "#eceef1",
}  # fmt: skip
HEAT_DARK: Mapping[str, str] = {
    "h5": "#1f4d1b", "h4": "#36501a", "h3": "#544711", "h2": "#5f3814", "h1": "#64221d", "none": "#2a2e35",
}  # fmt: skip
STATUS: Mapping[str, tuple[str, str]] = {
    "pass": ("better", "better-fill"), "warn": ("warn", "warn-fill"), "fail": ("fail", "fail-fill"),
    "unknown": ("warn", "warn-fill"), "skip": ("faint", "panel"),
}  # fmt: skip
"""Text and background of each tone, as names of colours."""


def heat_class(share: float | None) -> str:
    """The class of a share; ``none`` where nothing was measured or expected."""
    return "none" if share is None else next((name for least, name in HEAT if share >= least), HEAT[-1][1])


def css() -> str:
    """All rules."""
    dark = _colours(DARK, HEAT_DARK)
    return f"{_SHAPES}{_colours(LIGHT, HEAT_LIGHT)}@media screen and (prefers-color-scheme:dark){{{dark}}}{_PAPER}"


def _colours(c: Colours, heat: Mapping[str, str]) -> str:
    rules = {
        "body": f"color:{c['text']};background:{c['page']}",
        ".note,dt,caption,small": f"color:{c['faint']}",
        "pre,code": f"background:{c['panel']}",
        "h2": f"border-color:{c['panel-edge']}",
        ".plain th,.plain td,.plain tr,details": f"border-color:{c['panel-edge']}",
        "thead th,td:before": f"color:{c['faint']}",
        ".gauge": f"background:{c['bridge']}",
        ".gauge .high": f"background:{c['nvlink']}",
        ".gauge .middle": f"background:{c['warn']}",
        ".gauge .low": f"background:{c['fail']}",
        ".curve polyline": f"stroke:{c['way']}",
        ".spread .counts": f"fill:{c['edge']}",
        ".spread .range": f"fill:{c['bridge']}",
        ".spread .median": f"stroke:{c['text']}",
        ".spread .off": f"fill:{c['fail']}",
        ".mosaic text": f"fill:{c['text']}",
        ".mosaic .group": f"fill:{c['panel']};stroke:{c['panel-edge']}",
        "summary": f"color:{c['way']}",
    }
    for tone, (text, fill) in STATUS.items():
        rules[f".problem.{tone}"] = f"background:{c[fill]};border-color:{c[text]}"
        rules[f".badge.{tone}"] = f"color:{c['page']};background:{c[text]}"
        rules[f"td.{tone},p.{tone},th.{tone}"] = f"color:{c[text]}"
        rules[f".mosaic .{tone}"] = f"fill:{c[fill]};stroke:{c[text]}"
        rules[f".mosaic .mark-{tone}"] = f"stroke:{c[text]}"
        rules[f".heat td.{tone}"] = f"color:{c['text']};outline:2.5px solid {c[text]}"
    rules[".mosaic .fails"] = f"fill:{c['fail-fill']};stroke:{c['fail']}"
    rules[".mosaic .fail"] = f"fill:{c['fail']};stroke:{c['fail']}"
    rules[".mosaic .mark-fail"] = f"stroke:{c['page']}"
    rules[".mosaic .unknown"] = f"fill:{c['page']};stroke:{c['warn']}"
    rules[".mosaic .skip"] = f"fill:none;stroke:{c['faint']};stroke-dasharray:2 2"
    for name, colour in heat.items():
        rules[f".{name}"] = f"background:{colour}"
    return "".join(f"{name}{{{rule}}}" for name, rule in rules.items())


_SHAPES = (
    "body{margin:0;font:15px/1.45 system-ui,'DejaVu Sans',Verdana,sans-serif}"
    "main{max-width:1240px;margin:0 auto;padding:20px 24px 60px}"
    "header{display:grid;grid-template-columns:auto 1fr;gap:4px 20px;align-items:center}"
    "h1{font-size:22px;margin:0}h2{font-size:18px;margin:32px 0 12px;border-bottom:1px solid;padding-bottom:4px}"
    "h3{font-size:15.5px;margin:0 0 6px}p{margin:6px 0}"
    ".badge{font-size:22px;font-weight:700;padding:8px 18px;border-radius:8px;margin:0}"
    ".lead{grid-column:1/-1;font-size:16px;margin:10px 0 4px}"
    "dl{grid-column:1/-1;display:grid;grid-template-columns:max-content 1fr;gap:1px 8px;margin:0;font-size:13px}"
    "dt:after{content:':'}dd{margin:0}"
    ".problem{border-left:5px solid;border-radius:4px;padding:12px 16px;margin:12px 0}"
    "ol{margin:8px 0 8px 22px;padding:0}li{margin:3px 0}"
    "code,pre{font:13px/1.4 'DejaVu Sans Mono',Menlo,Consolas,monospace;border-radius:3px}"
    "code{padding:1px 4px;overflow-wrap:anywhere}pre{padding:8px 12px;overflow-x:auto;margin:6px 0}"
    ".note,small{font-size:13px}figure{margin:0;overflow-x:auto}figure svg{max-width:100%;height:auto}"
    ".tall{display:none}@media screen and (max-width:640px){main{padding:12px 12px 40px}.wide{display:none}"
    ".tall{display:block}figure:not(.tall) svg{max-width:none;min-width:640px}}"
    ".scroll{overflow-x:auto}.beside{display:inline-block;vertical-align:top;margin-right:28px;max-width:100%}"
    "table{border-collapse:collapse;margin:6px 0}"
    "caption{text-align:left;font-weight:600;padding:6px 0;white-space:nowrap}"
    "th,td{padding:3px 10px 3px 0;text-align:left;vertical-align:top;font-weight:400}"
    ".plain th,.plain td{border-bottom:1px solid}thead th{font-size:13px}.plain tbody th{font-weight:600}"
    ".heat{border-collapse:separate;border-spacing:2px}.heat th{font-weight:600;padding:2px 8px 2px 0}"
    ".heat td{text-align:center;padding:4px 7px;min-width:44px;font-variant-numeric:tabular-nums}"
    ".heat td.fail,.heat td.unknown{font-weight:700}.heat thead th{text-align:center;padding:2px}"
    "small{display:block}.bars td{vertical-align:middle}.bars th{padding-right:14px}"
    ".gauge{display:block;width:220px;height:10px;border-radius:5px;overflow:hidden}"
    ".gauge span{display:block;height:100%}"
    ".number{text-align:right;font-variant-numeric:tabular-nums}"
    ".curve{display:block}.curve polyline{fill:none;stroke-width:1.6}.figures{font-size:13px}"
    "p,li,.plain td:last-child{overflow-wrap:anywhere}.plain td:last-child{min-width:9em}"
    ".spread{display:block}.spread+.figures{white-space:nowrap}"
    ".spread .median{stroke-width:1.4}.mosaic .mark{fill:none;stroke-width:1.6}"
    ".mosaic text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif}"
    "details{border-bottom:1px solid;padding:4px 0}summary{cursor:pointer;padding:3px 0}"
    "td.fail,td.unknown,td.warn,p.fail,p.warn{font-weight:600}"
    "@media screen and (max-width:640px){.plain thead{display:none}.plain tr{display:flex;flex-wrap:wrap;gap:0 12px;"
    "border-bottom:1px solid;padding:5px 0}.plain th,.plain td{border:0;padding:1px 0}"
    ".plain td[data-head]:before{content:attr(data-head) ' ';font-weight:400;font-size:12px}"
    ".heat{font-size:11px}.heat td{min-width:0;padding:3px 1px}.heat th{padding:2px 2px 2px 0}"
    ".heat thead th{font-size:11px;padding:1px}}"
)
_PAPER = (
    "@media print{main{max-width:none;padding:0}body{font-size:11px}.note,small,.figures,dl,thead th{font-size:10px}"
    "code,pre{font-size:10px;white-space:pre-wrap}.scroll,pre{overflow:visible}.curve{width:130px}"
    "figure,tr,li,p,.bars,.beside{break-inside:avoid}figure svg{max-height:225mm}"
    ":is(.problem details,.scroll+details)::details-content{content-visibility:visible;block-size:auto}"
    "h2,h3{break-after:avoid}.badge,.problem,.gauge,.gauge span,.heat td{print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}.badge{border:1px solid}}"
)
