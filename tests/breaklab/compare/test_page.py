"""What the page consists of, read as a document; a real browser opens it in ``test_browser``."""

from __future__ import annotations

import builtins
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from breaklab.compare.charts import Chart, Curve, draw
from breaklab.compare.comparison import Comparison
from breaklab.compare.page import PageTexts, render_page
from breaklab.compare.timeline import Timeline, make_timeline
from breaklab.errors import BreaklabError

from .conftest import METRICS, broken_row, collectives, compared, healthy_row, report

TIMELINES = [
    make_timeline("Healthy run", 2, collectives([(0, 0.0, 1.0), (1, 0.5, 1.0)])),
    make_timeline("Broken run", 2, collectives([(0, 0.0, None), (1, 0.5, 0.7)])),
]
VOID = {"meta", "link", "br"}


class Document(HTMLParser):
    """Elements, their nesting, and where they point."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.append((tag, values))
        if "id" in values:
            self.ids[values["id"]] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data.strip()))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]


def render(
    comparison: Comparison, timelines: list[Timeline] = TIMELINES, symptom: str = "a symptom"
) -> str:
    texts = PageTexts(symptom, lambda outcome: outcome.value, "nothing was recorded")
    return render_page(comparison, timelines, texts)


@pytest.fixture(scope="module")
def html() -> str:
    return render(compared(report(healthy_row), report(broken_row)))


@pytest.fixture(scope="module")
def document(html: str) -> Document:
    document = Document(html)
    assert not document.open, "elements left open"
    return document


def test_page_asks_for_nothing_from_anywhere(document: Document) -> None:
    for tag, attrs in document.tags:
        assert tag not in ("script", "iframe", "object", "img")
        for name in ("href", "xlink:href", "src"):
            if name in attrs:
                assert attrs[name].startswith(("#", "data:,")), (tag, attrs)


def test_ids_are_unique_and_every_reference_finds_its_element(document: Document) -> None:
    assert [name for name, count in document.ids.items() if count > 1] == []
    for _tag, attrs in document.tags:
        for name in ("aria-labelledby", "aria-describedby"):
            assert name not in attrs or attrs[name] in document.ids
        for value in attrs.values():
            if value.startswith("url(#"):
                assert value[5:-1] in document.ids
        if attrs.get("xlink:href"):
            assert attrs["xlink:href"][1:] in document.ids


def test_headings_descend_one_level_at_a_time(document: Document) -> None:
    levels = [int(tag[1]) for tag, _attrs in document.tags if tag in ("h1", "h2", "h3", "h4")]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_language_is_declared(document: Document) -> None:
    assert document.all("html") == [{"lang": "en"}]


def test_every_chart_is_named_described_and_has_its_numbers_as_a_table(document: Document) -> None:
    charts = [attrs for attrs in document.all("svg") if attrs.get("role") == "img"]
    assert len(charts) == 3 + 2  # loss, grad_norm, distance; two timelines
    assert all(attrs["aria-labelledby"] and attrs["aria-describedby"] for attrs in charts)
    assert len(document.all("table")) == len(charts)
    assert len(document.all("caption")) == len(charts)
    assert len(document.all("desc")) == len(charts)
    assert {attrs["scope"] for attrs in document.all("th")} == {"col", "row"}


def test_picture_that_only_decorates_is_hidden_from_readers(document: Document) -> None:
    for attrs in document.all("svg"):
        assert attrs.get("role") == "img" or attrs.get("aria-hidden") == "true"


def test_what_scrolls_can_be_reached_with_the_keyboard(document: Document) -> None:
    scrolling = [attrs for attrs in document.all("div") if "scroll" in attrs.get("class", "")]
    assert scrolling
    for attrs in scrolling:
        assert attrs["tabindex"] == "0"
        assert attrs["role"] == "region"
        assert attrs.get("aria-label") or attrs.get("aria-labelledby")


def test_every_series_is_there_under_its_name(document: Document) -> None:
    names = [text for tag, text in document.texts if tag == "title"]
    for run in ("healthy", "broken"):
        for rank in (0, 1):
            assert names.count(f"{run}, rank {rank}") == (2 if run == "healthy" else 3)


def test_run_and_rank_are_told_by_more_than_colour() -> None:
    points = ((0, 1.0), (1, 2.0))
    curves = tuple(
        Curve(run, rank, points, f"{run} {rank}")
        for run in ("healthy", "broken")
        for rank in (0, 1)
    )
    svg = draw(Chart("c", "title", "description", "step", "loss", curves, (0, 1)))
    groups = svg.split('<g id="c-curve-')[1:]
    assert ["stroke-dasharray" in group.split("<defs")[0] for group in groups] == [
        False, False, True, True,
    ]  # fmt: skip
    marks = [group.split("<defs>")[1].split(' d="')[1].split('"')[0] for group in groups]
    assert marks[0] != marks[1]
    assert marks[2] != marks[3]


def test_chart_takes_its_colours_from_the_page_in_light_and_dark() -> None:
    curve = Curve("healthy", 0, ((0, 1.0),), "healthy 0")
    svg = draw(Chart("c", "t", "d", "step", "loss", (curve,), (0, 1), 0, "parts"))
    assert "var(--healthy)" in svg
    assert "#" not in svg.replace('"#c-', "").replace("url(#c-", "")
    assert "<style" not in svg


def test_curve_with_nan_and_one_that_spans_decades_are_drawn() -> None:
    points = ((0, 1e-4), (1, float("nan")), (2, float("inf")), (3, 100.0))
    curve = Curve("broken", 0, points, "broken 0")
    svg = draw(Chart("c", "t", "d", "step", "loss", (curve,), (0, 3)))
    assert "nan" not in svg
    assert "inf" not in svg
    only_nan = Curve("broken", 0, ((0, float("nan")),), "broken 0")
    assert "curve-broken-0" in draw(Chart("c", "t", "d", "step", "loss", (only_nan,), (0, 0)))


def test_dollar_signs_in_a_key_are_no_formula() -> None:
    curve = Curve("broken", 0, ((0, 1.0),), "broken 0")
    assert ">$x^2$</text>" in draw(Chart("c", "t", "d", "step", "$x^2$", (curve,), (0, 0)))


def test_long_curve_stays_small() -> None:
    points = tuple((step, (step % 17) / 17) for step in range(5000))
    curve = Curve("broken", 0, points, "broken 0")
    svg = draw(Chart("c", "t", "d", "step", "loss", (curve,), (0, 4999)))
    assert svg.count("<use") < 60


HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(1)">&amp;$x^2$'


def hostile_comparison() -> Comparison:
    from dataclasses import replace

    row: Any = lambda rank, step: {HOSTILE: 1.0 + step}  # noqa: E731
    comparison = compared(
        report(row), report(row), replace(METRICS, curves=(HOSTILE,), compare=(HOSTILE,))
    )
    subject = replace(comparison.subject, bug_id=HOSTILE, lab=HOSTILE, args=(HOSTILE,))
    judged = replace(comparison.broken.judged, summary=HOSTILE, details=(HOSTILE,))
    return replace(comparison, subject=subject, broken=replace(comparison.broken, judged=judged))


def test_texts_of_strangers_stay_texts() -> None:
    fields = dict.fromkeys(("operation", "group", "shape", "dtype", "place"), HOSTILE)
    timeline = make_timeline(HOSTILE, 1, collectives([(0, 0.0, 1.0)], **fields))
    page = render(hostile_comparison(), [timeline, timeline], symptom=HOSTILE)
    document = Document(page)
    assert not document.open
    assert not document.all("script")
    assert not document.all("img")
    seen = [text for _tag, text in document.texts if HOSTILE in text]
    assert len(seen) > 20  # headings, labels, tables, tooltips: all verbatim


def test_lab_without_numbers_and_run_without_records_say_so() -> None:
    comparison = compared(report(healthy_row), report(broken_row), None)
    texts = [text for _tag, text in Document(render(comparison, [])).texts]
    assert "nothing was recorded" in texts
    assert any("declares no numbers" in text for text in texts)


def test_run_without_any_row_is_a_page_too() -> None:
    nothing = report(healthy_row, num_steps=0)
    assert not Document(render(compared(report(healthy_row), nothing), [])).open
    assert not Document(render(compared(nothing, nothing), [])).open


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_missing_library_is_one_message_with_the_command_to_install_it(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    comparison = compared(report(healthy_row), report(broken_row))
    with pytest.raises(BreaklabError, match=missing) as raised:
        render(comparison)
    assert "breaklab[report]" in raised.value.hint
