"""Breaks that a pattern can't say: LibCST transformers in Python, run only where they are trusted.

A codemod lies in ``codemods/`` beside the specs and is named by ``codemod: codemods/x.py:Class``.
It derives from :class:`Codemod` and carries its own EXAMPLES, which run as tests.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from breaklab.errors import SiteError
from breaklab.i18n import _
from breaklab.inject.guard import check_parseable
from breaklab.model import Injection

Node = TypeVar("Node")


@dataclass(frozen=True)
class Example:
    """What a codemod does to a source; each is run as a test.

    ``after`` is the changed source, ``None`` where the codemod must find no site or several.
    """

    before: str
    after: str | None


class Codemod(cst.CSTTransformer):
    """Base of the codemods: a LibCST transformer that says where its one site is.

    Return ``self.site(original_node, changed)`` from the ``leave_`` method that changes the tree,
    and leave every other node alone: what was not changed keeps its bytes.
    """

    METADATA_DEPENDENCIES = (PositionProvider,)
    EXAMPLES: ClassVar[Sequence[Example]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []  # of the sites, from 1

    def site(self, original: cst.CSTNode, changed: Node) -> Node:
        """Say that ``original`` is a site, and return what takes its place."""
        self.lines.append(self.get_metadata(PositionProvider, original).start.line)
        return changed


def run_codemod(codemod: type[Codemod], source: bytes, path: str) -> bytes:
    """Return ``source`` as a codemod changes it.

    Raises:
        SiteError: the source is no Python, or the codemod has not exactly one site there.
    """
    check_parseable(source.decode("utf-8", errors="replace").lstrip("\ufeff"), path)
    transformer = codemod()
    name = codemod.__name__
    try:
        module = cst.parse_module(source)
        if module.bytes != source:  # it drops a form feed in front of a statement
            raise SiteError(_("LibCST can't reproduce {path}").format(path=path))
        changed = MetadataWrapper(module, unsafe_skip_copy=True).visit(transformer).bytes
    except cst.ParserSyntaxError as error:
        raise SiteError(
            _("{path} can't be read: line {line}: {reason}").format(
                path=path, line=error.raw_line, reason=error.message
            )
        ) from error
    except SiteError:
        raise
    except Exception as error:  # the author's code may fail in any way
        message = _("the codemod {name} failed: {reason}").format(name=name, reason=error)
        raise SiteError(message) from error
    if len(transformer.lines) == 1:
        return changed
    if not transformer.lines:
        raise SiteError(_("the codemod {name} has no site in {path}").format(name=name, path=path))
    raise SiteError(
        _("the codemod {name} has {count} sites in {path}, on lines {lines}").format(
            name=name,
            count=len(transformer.lines),
            path=path,
            lines=", ".join(map(str, transformer.lines)),
        )
    )


def load_codemod(injection: Injection) -> type[Codemod]:
    """Import the codemod that a spec names.

    Raises:
        SiteError: it is not trusted, lies outside its pack, or can't be imported.
    """
    if not injection.trusted:
        raise SiteError(
            _("the codemod {name} is Python code of a pack that is not this project's own").format(
                name=injection.codemod
            ),
            hint=_("read it; if you trust it, say so: --trust"),
        )
    relative, _colon, name = injection.codemod.partition(":")
    pack = Path(injection.pack).resolve()
    file = (pack / relative).resolve()
    if not file.is_relative_to(pack) or not file.is_file():
        message = _("the pack {pack} has no {file}").format(pack=pack, file=relative)
        raise SiteError(message)
    found = getattr(_import(file), name, None)
    if not (isinstance(found, type) and issubclass(found, Codemod)):
        raise SiteError(_("{file} has no codemod {name}").format(file=relative, name=name))
    return found


def _import(file: Path) -> ModuleType:
    """Import a file under a name of its own, leaving no bytecode beside it."""
    spec = importlib.util.spec_from_file_location(f"breaklab_codemods_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    writes_none = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        message = _("{file} can't be imported: {reason}").format(file=file, reason=error)
        raise SiteError(message) from error
    finally:
        sys.dont_write_bytecode = writes_none
    return module
