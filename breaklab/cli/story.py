"""What a learner reads once a break is behind them: the concept, the lesson, where it happened."""

from __future__ import annotations

from breaklab.cli.render import Screen
from breaklab.i18n import _, language
from breaklab.model import BreakSpec


def print_lesson(screen: Screen, spec: BreakSpec) -> None:
    """Print the concept, the lesson and the sources of a break."""
    screen.heading(_("Lesson"))
    screen.prose(spec.concept.get(language()), "strong", indent=2)
    screen.prose(spec.lesson.get(language()), indent=2)
    if spec.sources:
        screen.line()
        screen.heading(_("Where people met this bug"))
        for source in spec.sources:
            screen.prose(source, indent=2)
