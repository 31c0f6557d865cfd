from __future__ import annotations

import json
from pathlib import Path

from breaklab.author.report import github_annotations, sarif
from breaklab.errors import Finding, Location

ROOT = Path("/repo")
FINDINGS = [
    Finding(Location("/repo/breaks/35-01.yaml", 4, 7), "R2", "100% of\nlines", "fewer: lines"),
    Finding(Location("/elsewhere/a,b.yaml"), "file", "can't be read"),
    Finding(Location("/repo/breaks/35-02.yaml", 9), "R2", "too long"),
]


def test_annotations_name_the_place_and_escape_what_the_format_reserves():
    assert github_annotations(FINDINGS, ROOT) == [
        "::error file=breaks/35-01.yaml,line=4,col=7,title=breaklab R2"
        "::100%25 of%0Alines%0Afewer: lines",
        "::error file=/elsewhere/a%2Cb.yaml,title=breaklab file::can't be read",
        "::error file=breaks/35-02.yaml,line=9,title=breaklab R2::too long",
    ]


def test_sarif_log_holds_each_finding_with_its_rule_and_region():
    log = json.loads(json.dumps(sarif(FINDINGS, ROOT)))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["R2", "file"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert places == [
        {
            "artifactLocation": {"uri": "breaks/35-01.yaml"},
            "region": {"startLine": 4, "startColumn": 7},
        },
        {"artifactLocation": {"uri": "/elsewhere/a,b.yaml"}},
        {
            "artifactLocation": {"uri": "breaks/35-02.yaml"},
            "region": {"startLine": 9, "startColumn": 1},
        },
    ]


def test_no_findings_make_an_empty_log():
    assert sarif([], ROOT)["runs"][0]["results"] == []
    assert github_annotations([], ROOT) == []
