"""The page in a real headless Chromium, at a phone's width and a screen's, in light and dark.

Needs ``chromium`` and ``chromedriver`` (Debian: chromium, chromium-driver); skipped without.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from breaklab.compare.page import PageTexts, render_page
from breaklab.compare.timeline import make_timeline

from .conftest import broken_row, collectives, compared, healthy_row, report

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no chromium here (apt-get install chromium)"),
    pytest.mark.skipif(not DRIVER, reason="no chromedriver here (apt-get install chromium-driver)"),
]

PHONE, SCREEN = 400, 1280
VIEWS = [(width, scheme) for width in (PHONE, SCREEN) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with two runs of two ranks; the broken one stalls."""
    times = [(rank, 0.1 * step + 0.02 * rank, 0.1 * step + 0.05) for step in range(9)
             for rank in (0, 1)]  # fmt: skip
    timelines = [
        make_timeline("Healthy run", 2, collectives(times, shape="(2048,)", dtype="float32")),
        make_timeline("Broken run", 2, collectives([*times[:8], (0, 0.4, None), (1, 0.42, None)])),
    ]
    comparison = compared(report(healthy_row), report(broken_row, num_steps=5))
    texts = PageTexts("the loss is <b>wrong</b>", lambda outcome: outcome.value)
    path = tmp_path_factory.mktemp("page") / "out.html"
    path.write_text(render_page(comparison, timelines, texts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("chromium")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def opened(request: pytest.FixtureRequest, browser: Any, page: Path) -> Any:
    width, scheme = request.param
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())
    return browser


def test_console_stays_empty_and_nothing_is_fetched(opened: Any, page: Path) -> None:
    assert opened.get_log("browser") == []
    requests = [
        entry["message"]
        for entry in opened.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"]
    ]
    assert requests, "the log sees at least the page itself"
    assert [text for text in requests if page.name not in text and '"data:' not in text] == []


def test_every_series_is_drawn_visibly(opened: Any) -> None:
    curves = opened.execute_script(
        """
        return [...document.querySelectorAll("g.curve")].map(group => {
          const path = group.querySelector(":scope > path"), box = group.getBoundingClientRect();
          return [group.querySelector("title").textContent, path.getTotalLength(),
                  getComputedStyle(path).stroke, box.width, box.height];
        });
        """
    )
    names = sorted(curve[0] for curve in curves)
    healthy = [f"healthy, rank {rank}" for rank in (0, 1)] * 2  # loss, grad_norm
    broken = [f"broken, rank {rank}" for rank in (0, 1)] * 3  # and the distance
    assert names == sorted(healthy + broken)
    card = opened.execute_script(
        "return getComputedStyle(document.querySelector('.card')).backgroundColor"
    )
    for name, length, stroke, width, height in curves:
        assert length > 50, name
        assert min(width, height) > 20, name
        assert contrast(stroke, card) >= 3.0, (name, stroke, card)


def test_every_operation_is_drawn_and_named(opened: Any) -> None:
    bars = opened.execute_script(
        """
        return [...document.querySelectorAll(".timeline .bar")].map(bar =>
          [bar.querySelector("title").textContent, bar.getBoundingClientRect().width]);
        """
    )
    assert len(bars) == 18 + 10
    assert all(width >= 3 for _title, width in bars)
    assert sum("never returned" in title for title, _width in bars) == 2


def test_page_does_not_scroll_sideways_and_keeps_its_letters_readable(opened: Any) -> None:
    overflow, smallest = opened.execute_script(
        """
        const root = document.documentElement;
        const sizes = [...document.querySelectorAll("figure svg text")].map(
          text => text.getBoundingClientRect().height);
        return [root.scrollWidth - root.clientWidth, Math.min(...sizes)];
        """
    )
    assert overflow <= 0
    assert smallest >= 11


def test_text_stands_out_from_its_ground(opened: Any) -> None:
    pairs = opened.execute_script(
        """
        const ground = getComputedStyle(document.body).backgroundColor;
        const card = getComputedStyle(document.querySelector(".card")).backgroundColor;
        const of = selector => getComputedStyle(document.querySelector(selector));
        return [["h1", of("h1").color, ground], [".note", of(".note").color, ground],
                ["figcaption", of("figcaption").color, card],
                ["axis", of("figure svg text").fill, card]];
        """
    )
    for name, color, ground in pairs:
        assert contrast(color, ground) >= 4.5, (name, color, ground)


def test_dark_is_dark_and_light_is_light(browser: Any, page: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(page.as_uri())
        script = "return getComputedStyle(document.body).backgroundColor"
        grounds.append(luminance(browser.execute_script(script)))
    assert grounds[0] > 0.8
    assert grounds[1] < 0.05


def luminance(color: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` as WCAG 2 defines it."""
    channels = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [
        each / 12.92 if each <= 0.04045 else math.pow((each + 0.055) / 1.055, 2.4)
        for each in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
