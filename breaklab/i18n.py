"""Language of messages: English in the source, others from gettext catalogues in ``locale/``."""

from __future__ import annotations

import gettext
import os
from pathlib import Path

from breaklab.model import LANGUAGES

LOCALE_DIR = Path(__file__).parent / "locale"
_translations: gettext.NullTranslations = gettext.NullTranslations()
_language = "en"


def default_language() -> str:
    """Return the language asked for by BREAKLAB_LANG, else by the locale, else ``en``."""
    for variable in ("BREAKLAB_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            code = value.split("_")[0].split(".")[0].lower()
            return code if code in LANGUAGES else "en"
    return "en"


def set_language(language: str) -> None:
    """Select the language of every message from now on."""
    global _language, _translations
    _language = language
    _translations = gettext.translation("breaklab", LOCALE_DIR, languages=[language], fallback=True)


def language() -> str:
    """Return the language in force, for texts that a spec holds in several."""
    return _language


def _(message: str) -> str:
    """Return ``message`` in the language in force; mark every text a user may see with this."""
    return _translations.gettext(message)


def ngettext(singular: str, plural: str, count: int) -> str:
    """Return the form of a message that fits ``count``."""
    return _translations.ngettext(singular, plural, count)
