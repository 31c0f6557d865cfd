"""Bring the message catalogues up to date with the source, and compile them.

    python scripts/update_catalogue.py [--missing]

New messages appear untranslated in breaklab/locale/LANG/LC_MESSAGES/breaklab.po, messages that are
gone disappear. With --missing what is still to be translated is listed, and nothing is written.
Needs Babel.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

REPO = Path(__file__).resolve().parents[1]
PACKAGE = REPO / "breaklab"
KEYWORDS = {"_": None, "ngettext": (1, 2)}
LANGUAGES = ("es",)
WIDTH = 96
_NO_DATE = datetime(2000, 1, 1, tzinfo=UTC)
_LEFT_OUT = tuple(
    f'"{name}: '
    for name in (
        *("POT-Creation-Date", "PO-Revision-Date", "Last-Translator", "Language-Team"),
        *("Report-Msgid-Bugs-To", "Project-Id-Version", "Generated-By"),
    )
)


def source_catalogue() -> Catalog:
    """Every message that the source marks, without places: those would change at each edit."""
    catalogue = Catalog(charset="utf-8")
    for _file, _line, message, _comments, context in extract_from_dir(
        PACKAGE, method_map=[("**.py", "python")], keywords=KEYWORDS
    ):
        catalogue.add(message, context=context)
    return catalogue


def po_path(language: str) -> Path:
    """Where the translations into a language are edited."""
    return PACKAGE / "locale" / language / "LC_MESSAGES" / "breaklab.po"


def load(language: str) -> Catalog:
    """The translations as they are on disk; none where there is no file yet."""
    path = po_path(language)
    if not path.exists():
        return Catalog(locale=language, domain="breaklab", charset="utf-8")
    with path.open("rb") as file:
        return read_po(file, locale=language, domain="breaklab")


def up_to_date(language: str) -> Catalog:
    """The catalogue of a language with exactly the source's messages, sorted."""
    catalogue = load(language)
    catalogue.update(source_catalogue(), no_fuzzy_matching=True, update_header_comment=False)
    catalogue.obsolete.clear()
    return catalogue


def po_bytes(catalogue: Catalog) -> bytes:
    """A catalogue as it is edited."""
    buffer = BytesIO()
    write_po(buffer, catalogue, width=WIDTH, sort_output=True, omit_header=False)
    lines = buffer.getvalue().decode().split("\n")
    # Dates and names would make two people's updates conflict and say nothing that git doesn't.
    return "\n".join(line for line in lines if not line.startswith(_LEFT_OUT)).encode()


def mo_bytes(catalogue: Catalog) -> bytes:
    """A catalogue as gettext reads it; the same bytes whenever it is made."""
    # Babel writes both dates into the header, and takes the present where the file has none.
    catalogue.creation_date = catalogue.revision_date = _NO_DATE
    buffer = BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def untranslated(catalogue: Catalog) -> list[str]:
    """Messages without a translation, or with one that is marked as doubtful."""
    missing = []
    for message in catalogue:
        if not message.id:
            continue
        strings = message.string if isinstance(message.string, list | tuple) else [message.string]
        if message.fuzzy or not all(strings):
            missing.append(message.id if isinstance(message.id, str) else message.id[0])
    return missing


def main() -> int:
    """Update and compile, or list what is missing; 1 when something is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", action="store_true", help="only list what is missing")
    options = parser.parse_args()
    total = 0
    for language in LANGUAGES:
        catalogue = up_to_date(language)
        missing = untranslated(catalogue)
        total += len(missing)
        if options.missing:
            print(*(repr(each) for each in missing), sep="\n")
            continue
        path = po_path(language)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(po_bytes(catalogue))
        path.with_suffix(".mo").write_bytes(mo_bytes(load(language)))
        print(f"{language}: {len(catalogue)} messages, {len(missing)} to translate")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
