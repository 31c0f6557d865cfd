"""Make the pictures of the README and the docs, each from a real run, in docs/pictures.

    python scripts/pictures.py [NAME...]      # lanes, diagnosis, watch, compare; default: all

Terminal pictures are what tmux shows, drawn by rich as SVG; the page of ``compare`` is
photographed in a headless Chromium, light and dark. Needs tmux, and chromium with chromedriver
(Debian: tmux, chromium, chromium-driver).
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT = 100, 26
LIMIT_S = 120.0


class Terminal:
    """A tmux session of its own, in ``folder``, with breaklab on the path and English texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder.parent / "tmux"
        path = f"{os.environ.get('BREAKLAB_BIN', Path(sys.executable).parent)}:/usr/bin:/bin"
        setting = (
            f"PATH={path} LANG=C.UTF-8 BREAKLAB_LANG=en HOME={folder.parent} PS1='$ '"
            " TERM=tmux-256color"
        )
        self._tmux(
            "new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(folder),
            f"env -i {setting} bash --norc --noprofile",
        )  # fmt: skip

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type as a person does."""
        self._tmux("send-keys", "-l", text)
        if enter:
            self._tmux("send-keys", "Enter")

    def run(self, command: str) -> None:
        """Run a command to its end."""
        done = self._folder.parent / "done"
        done.unlink(missing_ok=True)
        self.type(f"{command}; touch {shlex.quote(str(done))}")
        self.wait_for(done.exists, command)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"pictures: {what} took over {LIMIT_S:.0f} s:\n{self.screen()}")
            time.sleep(0.1)

    def screen(self) -> str:
        """What the terminal shows, colours included."""
        return self._tmux("capture-pane", "-p", "-e")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._tmux("send-keys", "C-c")

    def close(self) -> None:
        """End the session and what runs in it."""
        self._tmux("kill-server")


def screen_text(terminal: Terminal) -> str:
    """What the terminal shows, without colours."""
    return Text.from_ansi(terminal.screen()).plain


def draw(name: str, title: str, screen: str) -> None:
    """Write a terminal's screen as an SVG."""
    lines = [line for line in screen.rstrip().split("\n") if "; touch " not in line]
    text = Text.from_ansi("\n".join(lines).rstrip().removesuffix("$").rstrip())
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(text, end="\n\n")  # a last line would lose its underscores
    path = PICTURES / f"{name}.svg"
    path.write_text(console.export_svg(title=title, unique_id=name), encoding="utf-8")
    print(path.relative_to(ROOT))


def workspace(folder: Path) -> Path:
    """Copy what a learner works with."""
    root = folder / "lab"
    for part in ("labs", "breaks", "tests/phase35"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def lanes_and_diagnosis(terminal: Terminal) -> None:
    """A run on its way; break 35-01's first variant; then what each rank waited for."""
    terminal.run("breaklab apply 35-01 > /dev/null")
    command = (
        "breaklab run --num-ranks 3 --variant silent -- --sync bucket --steps 1000 --epochs 99"
    )
    terminal.run(f"{command} > /dev/null")  # from now on it is known where the bars end
    terminal.run("clear")
    terminal.type(command)
    terminal.wait_for(lambda: re.search(r"rank 2 +step [3-8]\d\d", screen_text(terminal)), command)
    draw("lanes", command, terminal.screen())
    terminal.interrupt()
    terminal.run("clear")
    terminal.run("breaklab run")
    draw("stall", "breaklab run", terminal.screen())
    terminal.run("clear")
    terminal.run("breaklab diagnose")
    draw("diagnosis", "breaklab diagnose", terminal.screen())


def watch(terminal: Terminal) -> None:
    """The learner's loop with the first red test."""
    terminal.run("breaklab apply 35-01 > /dev/null")
    terminal.run("clear")
    terminal.type("breaklab watch")
    terminal.wait_for(lambda: "test_ranks_agree_at_step_zero" in terminal.screen(), "watch")
    draw("watch", "breaklab watch", terminal.screen())
    terminal.type("q", enter=False)


def compare(terminal: Terminal, folder: Path) -> None:
    """The page of break 35-01's silent variant, in light and dark."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    terminal.run("breaklab apply 35-01 > /dev/null")
    terminal.run("breaklab compare --variant silent --html ../page.html")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            size = {"width": 1000, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            driver.get((folder / "page.html").as_uri())
            size["height"] = driver.execute_script("return document.documentElement.scrollHeight")
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            path = PICTURES / f"compare-{scheme}.png"
            driver.save_screenshot(str(path))
            print(path.relative_to(ROOT))
    finally:
        driver.quit()


def main() -> None:
    """Make the pictures that were asked for."""
    names = ["lanes", "watch", "compare"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    wanted = parser.parse_args().names or names
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            folder = Path(temporary)
            terminal = Terminal(workspace(folder))
            try:
                if name == "compare":
                    compare(terminal, folder)
                else:
                    {"lanes": lanes_and_diagnosis, "watch": watch}[name](terminal)
            finally:
                terminal.close()


if __name__ == "__main__":
    main()
