"""The hard rules that a machine can check without running anything: R1, R2, R4, R7, R8."""

from __future__ import annotations

import io
import keyword
import re
import tokenize

from breaklab.errors import Finding
from breaklab.i18n import _
from breaklab.inject.diff import changed_lines
from breaklab.inject.forbidden import new_forbidden_uses
from breaklab.inject.size import MAX_LINES, num_hunks, num_new_conditionals, num_touched_lines
from breaklab.model import LANGUAGES, BreakSpec, Text
from breaklab.spec.breaks import place_of

_SHORT = 3  # identifiers up to this length are words of any text
_MIN_LINE = 8  # characters; a shorter changed line is no give-away


def static_findings(spec: BreakSpec, pristine: bytes, broken: bytes) -> list[Finding]:
    """Return a finding for each rule that a break does not keep, whether waived or not.

    Args:
        spec: the break.
        pristine: the source without it.
        broken: the source with it.
    """
    removed, added = changed_lines(pristine, broken)
    return [
        *_one_bug(spec, pristine, broken),
        *_two_lines(spec, pristine, broken),
        *_harmless(spec, pristine, broken),
        *_hints_do_not_leak(spec, removed, added),
        *text_findings(spec),
    ]


def text_findings(spec: BreakSpec) -> list[Finding]:
    """Return the findings of the rules that need no source: R8, every text in every language."""
    return _languages(spec)


def _finding(spec: BreakSpec, rule: str, key: str, message: str) -> Finding:
    return Finding(place_of(spec, key), rule, message)


def _one_bug(spec: BreakSpec, pristine: bytes, broken: bytes) -> list[Finding]:
    """R1: one hunk, and at most one conditional more than before."""
    findings = []
    hunks = num_hunks(pristine, broken)
    moved = spec.inject.action.value.startswith("move")
    if hunks != 1 and not (moved and hunks == 2):
        message = _("the change is {count} hunks; one bug is one hunk").format(count=hunks)
        findings.append(_finding(spec, "R1", "inject", message))
    more = num_new_conditionals(pristine, broken)
    if more > 1:
        message = _("the change adds {count} conditionals; at most one is allowed")
        findings.append(_finding(spec, "R1", "inject", message.format(count=more)))
    return findings


def _two_lines(spec: BreakSpec, pristine: bytes, broken: bytes) -> list[Finding]:
    """R2: the fix touches at most two lines; a moved or changed line counts once."""
    touched = num_touched_lines(pristine, broken)
    if touched <= MAX_LINES:
        return []
    message = _("the fix touches {count} lines; {limit} are allowed").format(
        count=touched, limit=MAX_LINES
    )
    return [_finding(spec, "R2", "inject", message)]


def _harmless(spec: BreakSpec, pristine: bytes, broken: bytes) -> list[Finding]:
    """R4: the new code imports nothing, runs nothing, opens nothing."""
    return [
        _finding(spec, "R4", "inject", _("the new code uses {what}").format(what=what))
        for what in new_forbidden_uses(pristine, broken)
    ]


def _hints_do_not_leak(spec: BreakSpec, removed: list[bytes], added: list[bytes]) -> list[Finding]:
    """R7: hint 1 names no identifier of the fix, and no hint holds a changed line."""
    findings = []
    lines = [line.decode("utf-8", errors="replace") for line in (*removed, *added)]
    codes = [_squeezed(_without_comment(line)) for line in lines]
    shown = [code for code in codes if len(code) >= _MIN_LINE]
    secret = _fix_identifiers(spec, lines)
    for level, hint in enumerate(spec.hints, start=1):
        for language, text in hint.by_language.items():
            if any(line in _squeezed(text) for line in shown):
                message = _("hint {level} ({language}) holds a changed line")
                message = message.format(level=level, language=language)
                findings.append(_finding(spec, "R7", _hint_key(spec, level, language), message))
            words = set(re.findall(r"[A-Za-z_]\w*", text))
            if level == 1 and (leaked := sorted(secret & words)):
                message = _("hint 1 ({language}) names {names}, which the fix changes").format(
                    language=language, names=", ".join(leaked)
                )
                findings.append(_finding(spec, "R7", _hint_key(spec, level, language), message))
    return findings


def _hint_key(spec: BreakSpec, level: int, language: str) -> str:
    """Return the key path of a hint's text, in whichever of the two forms the spec has it."""
    base = f"hint_{level}" if f"hint_{level}" in spec.lines else f"hints[{level - 1}]"
    return f"{base}.{language}" if f"{base}.{language}" in spec.lines else base


def _fix_identifiers(spec: BreakSpec, lines: list[str]) -> set[str]:
    """Return identifiers of the changed lines that no text would hold by chance.

    The words of the symptom and the concept are given to the learner anyway.
    """
    given = {
        word.lower()
        for text in (spec.symptom, spec.concept)
        for value in text.by_language.values()
        for word in re.findall(r"[A-Za-z_]\w*", value)
    }
    names = set()
    for line in lines:
        names |= {name for name in _names(line) if len(name) > _SHORT and name.lower() not in given}
    return names


def _names(line: str) -> set[str]:
    names = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(line.strip()).readline):
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                names.add(token.string)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # a part of a statement; what came before the error counts
    return names


def _without_comment(line: str) -> str:
    """Return a line of code without the comment behind it; a line that is a comment as it is."""
    code = re.split(r"\s+# ", line, maxsplit=1)[0]
    return code if code.strip() else line


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _languages(spec: BreakSpec) -> list[Finding]:
    """R8: every text in every language."""
    texts: list[tuple[str, str, Text]] = [
        ("concept", "concept", spec.concept),
        ("symptom", "symptom", spec.symptom),
        ("hidden_cause", "hidden_cause", spec.hidden_cause),
        ("lesson", "lesson", spec.lesson),
        *((f"hint {n}", _hint_key(spec, n, ""), hint) for n, hint in enumerate(spec.hints, 1)),
    ]
    return [
        _finding(
            spec,
            "R8",
            key,
            _("{what} has no text in {language}").format(what=what, language=language),
        )
        for what, key, text in texts
        for language in LANGUAGES
        if not text.by_language.get(language)
    ]
