"""How a warm parent starts in an interpreter of the lab's choice, and what it says if it can't."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import breaklab
from breaklab.errors import RunError
from breaklab.i18n import _
from breaklab.ranks.wire import readable

_START_LIMIT_S = 300.0

# Loads only breaklab itself, by path: the lab's interpreter need not have it installed, and gets
# nothing else of ours. The first entry of sys.path, the working folder, must not be searched.
# The rest of the command line names a function of ours and its arguments.
_BOOTSTRAP = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
if sys.version_info < (3, 11):
    sys.exit("Python %d.%d is too old: 3.11 is needed" % sys.version_info[:2])
import importlib.util
spec = importlib.util.spec_from_file_location(
    "breaklab", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]])
sys.modules["breaklab"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["breaklab"])
import importlib
module, function = sys.argv[2].split(":")
getattr(importlib.import_module("breaklab.ranks." + module), function)(*sys.argv[3:])
"""


def host_command(python: str, control_fd: int, preload: tuple[str, ...]) -> list[str]:
    """Return the command that starts a warm parent, connected by the inherited ``control_fd``."""
    return bootstrap_command(python, "host:main", str(control_fd), *preload)


def bootstrap_command(python: str, function: str, *arguments: str) -> list[str]:
    """Return the command that calls ``module:function`` of this package in another interpreter."""
    return [python, "-c", _BOOTSTRAP, str(Path(breaklab.__file__).parent), function, *arguments]


def read_answer(control: socket.socket) -> dict[str, Any]:
    """Return the warm parent's first message; empty when it died or said nothing in time."""
    data = bytearray()
    while not data.endswith(b"\n"):
        if not readable(control, timeout_s=_START_LIMIT_S):
            return {"code": "slow"}
        part = control.recv(4096)
        if not part:
            return {}
        data += part
    answer = json.loads(data)
    return answer if isinstance(answer, dict) else {}


def start_error(answer: Mapping[str, str], python: str, tail: str) -> RunError:
    """Translate what the warm parent said into an error with a remedy."""
    fields = {"python": python, "tail": tail, "limit": int(_START_LIMIT_S), **answer}
    templates = {
        "missing": (
            _("{python} has no module {missing}, which the lab needs (`preload`: {module})."),
            _("Install it there, for example with `{python} -m pip install {missing}`."),
        ),
        "failed": (
            _("The module {module} of `preload` can't be imported by {python}: {error}."),
            _("Try `{python} -c 'import {module}'`, or remove it from `preload` in lab.yaml."),
        ),
        "threads": (
            _("The module {module} of `preload` started threads, so ranks can't be forked safely."),
            _("Remove {module} from `preload` in lab.yaml; each rank then imports it by itself."),
        ),
        "slow": (
            _("{python} did not finish importing `preload` within {limit} seconds."),
            _("Remove the slow module from `preload` in lab.yaml."),
        ),
    }
    died = (
        _("{python} ended before it could start ranks: {tail}"),
        _("Check `python` in lab.yaml; it must be Python 3.11 or newer."),
    )
    message, hint = templates.get(answer.get("code", ""), died)
    return RunError(message.format(**fields), hint=hint.format(**fields))


def refusal(message: Mapping[str, Any]) -> RunError:
    """Translate a supervisor's refusal of a job into an error with a remedy."""
    modules = ", ".join(message["modules"])
    return RunError(
        _("`preload` already imported {modules} of the lab's own source.").format(modules=modules),
        hint=_("Remove it, and what imports it, from `preload` in lab.yaml."),
    )
