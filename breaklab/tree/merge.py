"""Three-way merge of one file, by git."""

from __future__ import annotations

import ast
import os
import subprocess
import warnings
from pathlib import Path

from breaklab.errors import TreeError
from breaklab.i18n import _

_MOST_CONFLICTS = 127  # git merge-file exits with the number of conflicts, at most this
_TIMEOUT_S = 60.0


def merge(base: bytes, ours: bytes, theirs: bytes, folder: Path) -> bytes | None:
    """Return ``ours`` with the change from ``base`` to ``theirs``, or None on a conflict.

    A merge that turns valid Python into invalid Python counts as a conflict, too.

    Args:
        base: what both sides started from.
        ours: one side.
        theirs: the other side.
        folder: where files named ``*.tmp`` may lie meanwhile.

    Raises:
        TreeError: git is not installed, or failed.
        OSError: the temporary files could not be written.
    """
    if ours in (base, theirs):
        return theirs
    merged = _merge_file(base, ours, theirs, folder)
    if merged is None and _all_crlf(ours) and b"\r" not in base + theirs:
        # An editor that changed every newline changed every line; that need not be a conflict.
        crlf = [side.replace(b"\n", b"\r\n") for side in (base, theirs)]
        merged = _merge_file(crlf[0], ours, crlf[1], folder)
    if merged is not None and _is_python(ours) and not _is_python(merged):
        return None
    return merged


def _merge_file(base: bytes, ours: bytes, theirs: bytes, folder: Path) -> bytes | None:
    sides = {"ours.tmp": ours, "base.tmp": base, "theirs.tmp": theirs}
    try:
        for name, content in sides.items():
            (folder / name).write_bytes(content)
        done = _run(["git", "merge-file", "--stdout", *sides], folder)
    finally:
        for name in sides:
            (folder / name).unlink(missing_ok=True)
    if done.returncode == 0:
        return done.stdout
    if 0 < done.returncode <= _MOST_CONFLICTS or b"binary" in done.stderr:
        return None
    reason = done.stderr.decode(errors="replace").strip() or str(done.returncode)
    raise TreeError(_("git merge-file failed: {reason}; nothing was changed").format(reason=reason))


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    # No repository and no configuration may have a say in the merge.
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
    }
    try:
        return subprocess.run(
            command, cwd=folder, env=env, capture_output=True, check=False, timeout=_TIMEOUT_S
        )
    except FileNotFoundError:
        raise TreeError(
            _(
                "you edited the source, and merging your edits needs git, which is not installed; "
                "nothing was changed"
            ),
            hint=_(
                "install git, or choose: `breaklab revert --keep` ends the break and leaves your "
                "file, `breaklab revert --discard` puts the original back; both save a copy first"
            ),
        ) from None
    except subprocess.TimeoutExpired:
        raise TreeError(
            _("git merge-file took over {seconds:.0f} s; nothing was changed").format(
                seconds=_TIMEOUT_S
            )
        ) from None


def _all_crlf(content: bytes) -> bool:
    return content.count(b"\r\n") == content.count(b"\n") > 0


def _is_python(content: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the learner's code; not our business
        try:
            ast.parse(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
