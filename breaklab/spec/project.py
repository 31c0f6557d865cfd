"""Where a project is: the folder whose ``pyproject.toml`` holds ``[tool.breaklab]``.

Where there is none, a folder with a ``lab.yaml`` is one, and its breaks are in ``breaks``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from breaklab.errors import ProjectError
from breaklab.i18n import _
from breaklab.model import BreakSpec, Lab, Project
from breaklab.spec.lab import MANIFEST, load_lab

_FILE = "pyproject.toml"
_BREAKS = "breaks"


def find_project(start: Path) -> Project:
    """Return the project that ``start`` lies in, from any subfolder.

    A ``[tool.breaklab]`` further up wins over a ``lab.yaml``, which it may list as one of several.

    Raises:
        ProjectError: no folder above is a project, or its settings can't be used.
    """
    start = start.resolve()
    manifest: Path | None = None
    for folder in (start, *start.parents):
        if manifest is None and (folder / MANIFEST).is_file():
            manifest = folder
        settings = _settings(folder / _FILE)
        if settings is not None:
            return Project(
                root=folder,
                labs=_folders(folder, settings, "labs"),
                breaks=_folders(folder, settings, "breaks"),
            )
    if manifest is not None:
        return Project(root=manifest, labs=(manifest,), breaks=(manifest / _BREAKS,))
    raise ProjectError(
        _("no breaklab project in {folder} or above it").format(folder=start),
        hint=_(
            "change to a folder with a {manifest}, or whose {file} holds [tool.breaklab]"
        ).format(manifest=MANIFEST, file=_FILE),
    )


def load_labs(project: Project) -> list[Lab]:
    """Return every lab of a project.

    Raises:
        ProjectError: the project has none, or two of one name.
        SpecError: a manifest can't be used.
    """
    labs = [load_lab(folder / MANIFEST) for folder in project.labs]
    if not labs:
        raise ProjectError(
            _("the project {root} has no lab").format(root=project.root),
            hint=_('add `labs = ["path/to/lab"]` to [tool.breaklab] in {file}').format(file=_FILE),
        )
    names = [lab.name for lab in labs]
    if len(set(names)) < len(names):
        raise ProjectError(_("two labs have the same name: {names}").format(names=", ".join(names)))
    return labs


def lab_named(project: Project, name: str) -> Lab:
    """Return the lab of a name.

    Raises:
        ProjectError: the project has none of that name.
    """
    labs = load_labs(project)
    for lab in labs:
        if lab.name == name:
            return lab
    raise ProjectError(
        _("this project has no lab {name}").format(name=name),
        hint=_("its labs: {names}").format(names=", ".join(lab.name for lab in labs)),
    )


def lab_of(project: Project, spec: BreakSpec) -> Lab:
    """Return the lab that a break is for: the one it names, else the one that has its file.

    Raises:
        ProjectError: there is no such lab.
    """
    return lab_among(load_labs(project), spec)


def lab_among(labs: list[Lab], spec: BreakSpec) -> Lab:
    """Return the one of ``labs`` that a break is for: as :func:`lab_of`, for many breaks.

    Raises:
        ProjectError: there is no such lab.
    """
    if spec.lab:
        found = [lab for lab in labs if lab.name == spec.lab]
    else:
        found = [lab for lab in labs if (lab.root / spec.inject.file).is_file()] or labs[:1]
    if not found:
        raise ProjectError(
            _("{bug_id} is for the lab {lab}, which this project does not have").format(
                bug_id=spec.bug_id, lab=spec.lab
            ),
            hint=_("its labs: {names}").format(names=", ".join(lab.name for lab in labs)),
        )
    return found[0]


def source_file(lab: Lab, spec: BreakSpec) -> Path:
    """Return the file that a break changes, absolute; inside the lab's source, links resolved.

    Raises:
        ProjectError: it lies elsewhere, is one of the tests, or does not exist.
    """
    path = (lab.root / spec.inject.file).resolve()
    if not path.is_relative_to(lab.source.resolve()):
        raise ProjectError(
            _("{bug_id} would change {file}, which is outside the lab's source").format(
                bug_id=spec.bug_id, file=spec.inject.file
            )
        )
    if path.is_relative_to(lab.tests.resolve()):
        raise ProjectError(
            _("{bug_id} would change {file}, which is one of the lab's tests").format(
                bug_id=spec.bug_id, file=spec.inject.file
            )
        )
    if not path.is_file():
        raise ProjectError(
            _("{bug_id} changes {file}, which the lab does not have").format(
                bug_id=spec.bug_id, file=spec.inject.file
            )
        )
    return path


def _settings(path: Path) -> dict[str, Any] | None:
    """Return the ``[tool.breaklab]`` table of a pyproject.toml, None where there is none."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProjectError(
            _("{file} can't be read: {reason}").format(file=path, reason=error)
        ) from error
    tool = table.get("tool")
    settings = tool.get("breaklab") if isinstance(tool, dict) else None
    return settings if isinstance(settings, dict) else None


def _folders(root: Path, settings: dict[str, Any], key: str) -> tuple[Path, ...]:
    value = settings.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProjectError(
            _("`{key}` of [tool.breaklab] in {file} must be a list of folders").format(
                key=key, file=root / _FILE
            )
        )
    return tuple((root / item).resolve() for item in value)
