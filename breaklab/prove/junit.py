"""A report of proofs in JUnit's XML, which CI services show: a suite for each break."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from breaklab.i18n import _

# What XML 1.0 can't hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Mapping[str, Any]) -> str:
    """Return a report, as :mod:`breaklab.prove.report` makes it, as one XML document.

    Each check of a break is a test case: one that failed is a failure, a waived one is skipped,
    with the reason. Specs that can't be used, and breaks that no shard proved, are errors.
    """
    suites = ElementTree.Element("testsuites", name="breaklab verify")
    for proof in report["proofs"]:
        _suite(suites, proof)
    lost = [(reason.split(":")[0], reason) for reason in report["broken"]]
    lost += [(str(bug_id), _("no shard proved it")) for bug_id in report["missing"]]
    if lost:
        suite = ElementTree.SubElement(suites, "testsuite", name="specs")
        _count(suite, tests=len(lost), errors=len(lost))
        for name, reason in lost:
            case = ElementTree.SubElement(
                suite, "testcase", classname="breaklab.specs", name=_text(name)
            )
            ElementTree.SubElement(case, "error", message=_text(reason))
    keys = ("tests", "failures", "errors", "skipped")
    _count(suites, **{key: sum(int(suite.get(key, "0")) for suite in suites) for key in keys})
    suites.set("time", f"{report['seconds']:.3f}")
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _suite(suites: ElementTree.Element, proof: Mapping[str, Any]) -> None:
    name = _text(str(proof["bug_id"] or _("the mystery break")))
    suite = ElementTree.SubElement(suites, "testsuite", name=name)
    failures = skipped = 0
    for check in proof["checks"]:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"breaklab.{name}", name=_text(check["name"])
        )
        if check["waived"]:
            skipped += 1
            reason = f"{check['waived']} ({check['detail']})"
            ElementTree.SubElement(case, "skipped", message=_text(reason))
        elif not check["kept"]:
            failures += 1
            ElementTree.SubElement(case, "failure", message=_text(check["detail"]))
    _count(suite, tests=len(proof["checks"]), failures=failures, skipped=skipped)
    suite.set("time", f"{proof['seconds']:.3f}")


def _count(
    element: ElementTree.Element,
    *,
    tests: int,
    failures: int = 0,
    errors: int = 0,
    skipped: int = 0,
) -> None:
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": skipped}
    element.attrib |= {key: str(count) for key, count in counts.items()}


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("?", text)
