"""Curves as SVG to be put into a page: matplotlib draws, the page's style sheet colours.

Matplotlib is an optional dependency and slow to import, so it is imported when a chart is drawn.
"""

from __future__ import annotations

import io
import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from breaklab.compare.series import Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEALTHY, BROKEN = "healthy", "broken"
_INCHES = (5.0, 3.0)  # 360 x 216 points: a phone's width, so that letters stay readable there
_MARKERS = "osD^vPX*"  # a shape for each rank, again from the ninth on
_MAX_MARKERS = 12  # of one curve; more hide it
_LOG_FROM = 50.0  # ratio of largest to smallest from which a logarithmic axis shows more
# Matplotlib writes colours as hex; each of these becomes a variable of the page's style sheet.
_COLOURS = {
    "#0a0001": "var(--healthy)",
    "#0a0002": "var(--broken)",
    "#0a0003": "var(--text)",
    "#0a0004": "var(--rule)",
    "#0a0005": "var(--card)",
}
_HEALTHY, _BROKEN, _TEXT, _RULE, _CARD = _COLOURS
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: small, sharp, selectable
    "text.parse_math": False,  # a `$` in a lab's key is no formula
    "font.size": 11.5,
    "axes.edgecolor": _TEXT,
    "axes.labelcolor": _TEXT,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "grid.color": _RULE,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "path.simplify": True,
}


@dataclass(frozen=True)
class Curve:
    """One line of a chart."""

    run: str  # HEALTHY or BROKEN
    rank: int
    points: Points
    label: str


@dataclass(frozen=True)
class Chart:
    """What a chart shows, in words already translated."""

    chart_id: str  # unique in the page
    title: str  # for who can't see it
    description: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    steps: tuple[int, int]  # first and last of the axis
    mark_at: int | None = None  # step to mark ...
    mark_label: str = ""  # ... with these words


def draw(chart: Chart) -> str:
    """Return the chart as an ``<svg>`` element without size, colours as variables of the page.

    A run is told by colour and by its line, solid or dashed; a rank by the shape of its marks.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    settings: Any = {**_SETTINGS, "svg.hashsalt": chart.chart_id}
    out = io.StringIO()
    with style.context(["default", settings]), warnings.catch_warnings():
        # A letter that matplotlib's own font lacks is drawn by the browser's.
        warnings.filterwarnings("ignore", message=".*missing from font.*")
        figure = Figure(figsize=_INCHES, layout="constrained")
        _plot(figure.add_subplot(), chart)
        figure.savefig(
            out,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
        )
    return _inline(out.getvalue(), chart)


def _plot(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    for curve in chart.curves:
        _add(axes, curve)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    if _wants_log(chart):
        axes.set_yscale("log")
    axes.margins(y=0.1)
    first, last = chart.steps
    pad = max(0.04 * (last - first), 0.2)
    axes.set_xlim(first - pad, last + pad)
    if all(value == 0 for curve in chart.curves for _step, value in curve.points):
        axes.set_ylim(-0.05, 1.0)
    if chart.mark_at is not None:
        axes.axvline(chart.mark_at, color=_TEXT, linestyle=":", linewidth=1.2)
        _label_mark(axes, chart.mark_at, chart.mark_label)


def _add(axes: Axes, curve: Curve) -> None:
    is_healthy = curve.run == HEALTHY
    num_points = len(curve.points)
    stride = max(1, math.ceil(num_points / _MAX_MARKERS))
    axes.plot(
        [step for step, _value in curve.points],
        [value if math.isfinite(value) else math.nan for _step, value in curve.points],
        gid=f"curve-{curve.run}-{curve.rank}",
        color=_HEALTHY if is_healthy else _BROKEN,
        linestyle="-" if is_healthy else (0, (4, 2.5)),
        linewidth=2.2 if is_healthy else 1.8,
        marker=_MARKERS[curve.rank % len(_MARKERS)],
        markersize=7 if is_healthy else 5,
        markerfacecolor=_CARD if is_healthy else _BROKEN,
        # Not all curves at the same steps: marks that lie on each other tell nothing.
        markevery=(min(curve.rank, num_points - 1) % stride, stride),
        zorder=2 if is_healthy else 3,
    )


def _label_mark(axes: Axes, step: int, label: str) -> None:
    low, high = axes.get_xlim()
    is_right = (step - low) > 0.6 * (high - low)
    axes.annotate(
        label,
        (step, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if is_right else 4, 2),
        textcoords="offset points",
        ha="right" if is_right else "left",
        color=_TEXT,
        annotation_clip=False,
    )


def _wants_log(chart: Chart) -> bool:
    values = [value for curve in chart.curves for _step, value in curve.points]
    finite = [value for value in values if math.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) / min(finite) >= _LOG_FROM


def _inline(document: str, chart: Chart) -> str:
    """Make a part of a page from a document: ids of its own, no style for others, words to read."""
    svg = ElementTree.fromstring(document)
    for name in ("width", "height"):
        svg.attrib.pop(name, None)
    for parent in svg.iter():
        for style in parent.findall(f"{{{_SVG}}}style"):
            parent.remove(style)
    for element in svg.iter():
        _localise(element, f"{chart.chart_id}-")
    _describe(svg, chart)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(svg, encoding="unicode")


def _localise(element: ElementTree.Element, prefix: str) -> None:
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, prefix + value)
        elif name == f"{{{_XLINK}}}href":
            element.set(name, "#" + prefix + value.removeprefix("#"))
        elif name == "clip-path":
            element.set(name, value.replace("url(#", f"url(#{prefix}"))
        elif name == "style":
            element.set(name, _restyled(value))


def _restyled(style: str) -> str:
    for colour, variable in _COLOURS.items():
        style = style.replace(colour, variable)
    kept = (part for part in style.split("; ") if not part.startswith("font-family"))
    return "; ".join(kept)


def _describe(svg: ElementTree.Element, chart: Chart) -> None:
    svg.set("role", "img")
    svg.set("aria-labelledby", f"{chart.chart_id}-title")
    svg.set("aria-describedby", f"{chart.chart_id}-desc")
    names = {f"{chart.chart_id}-curve-{each.run}-{each.rank}": each for each in chart.curves}
    for group in svg.iter(f"{{{_SVG}}}g"):
        curve = names.get(group.get("id", ""))
        if curve is not None:
            group.set("class", f"curve {curve.run}")
            _prepend(group, "title", "", curve.label)
    _prepend(svg, "desc", f"{chart.chart_id}-desc", chart.description)
    _prepend(svg, "title", f"{chart.chart_id}-title", chart.title)


def _prepend(parent: ElementTree.Element, tag: str, element_id: str, text: str) -> None:
    element = ElementTree.Element(f"{{{_SVG}}}{tag}")
    if element_id:
        element.set("id", element_id)
    element.text = text
    parent.insert(0, element)
