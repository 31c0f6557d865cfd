from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from breaklab.errors import ProjectError
from breaklab.prove.junit import junit
from breaklab.prove.proof import Check, Phase, Proof
from breaklab.prove.repeat import Round, unsteady
from breaklab.prove.report import Session, merge_reports, report_of
from breaklab.prove.shards import Shard

ALL = ["35-01", "35-02", "35-03"]


def proof(bug_id, *checks):
    phases = (Phase("controls", 5.0), Phase("test", 1.0), Phase("run stall", 2.0))
    return Proof(bug_id, checks or (Check("green", True),), phases, ("tests/a.py::test_a",))


def report(number, *proofs, of=2, bug_ids=ALL, broken=(), repeat=1):
    session = Session(bug_ids, Shard(number, of), 2, repeat, 10.0)
    return report_of(session, proofs, {p.bug_id: p.bug_id for p in proofs}, broken)


@pytest.fixture
def files(tmp_path):
    """Write reports to files, and return their paths."""

    def files(*reports):
        paths = [tmp_path / f"part-{number}.json" for number in range(len(reports))]
        for path, content in zip(paths, reports, strict=True):
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return paths

    return files


def test_seconds_of_a_break_leave_out_the_controls_that_all_wait_for():
    found = report(1, proof("35-02"), proof("35-01"), of=1)
    assert [(row["bug_id"], row["seconds"]) for row in found["proofs"]] == [
        ("35-01", 3.0),
        ("35-02", 3.0),
    ]
    assert (found["seconds"], found["controls_s"], found["seconds_per_break"]) == (10.0, 5.0, 5.0)
    assert found["proven"] is True


def test_merged_shards_are_the_whole(files):
    one, two = report(1, proof("35-03"), proof("35-01")), report(2, proof("35-02"), repeat=3)
    merged = merge_reports(files(two, one))
    assert [row["bug_id"] for row in merged["proofs"]] == ALL
    assert (merged["proven"], merged["missing"], merged["repeat"]) == (True, [], 1)
    assert (merged["seconds"], merged["seconds_per_break"]) == (20.0, 6.667)
    assert [part["number"] for part in merged["shards"]] == [1, 2]


def test_merge_of_a_merged_report_is_the_same(files, tmp_path):
    one, two = report(1, proof("35-03"), proof("35-01")), report(2, proof("35-02"))
    merged = merge_reports(files(one, two))
    again = tmp_path / "again.json"
    again.write_text(json.dumps(merged))
    assert merge_reports([again]) == merged


def test_shard_that_is_missing_leaves_the_whole_unproven(files):
    merged = merge_reports(files(report(1, proof("35-01"))))
    assert (merged["proven"], merged["missing"]) == (False, ["35-02", "35-03"])


def test_one_break_that_is_not_proven_or_usable_is_enough(files):
    bad = proof("35-02", Check("red", False, "other tests"))
    good = report(1, proof("35-01"), proof("35-03"))
    assert merge_reports(files(good, report(2, bad)))["proven"] is False
    broken = [report(1, proof("35-01"), proof("35-03"), broken=["x"]), report(2, proof("35-02"))]
    merged = merge_reports(files(*broken))
    assert (merged["proven"], merged["broken"]) == (False, ["x"])


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ((report(1), report(1)), "part-1.json and .*part-0.json both hold shard 1/2"),
        ((report(1), report(2, of=3)), "are not shards of one catalogue"),
        ((report(1), report(2, bug_ids=ALL[:2])), "are not shards of one catalogue"),
        (("no JSON",), "part-0.json is no report of verify"),
        (("[1, 2]",), "part-0.json is no report of verify"),
        (({**report(1), "proofs": [{}]},), "part-0.json is no report of verify"),
        (({**report(1), "shards": []},), "part-0.json is no report of verify"),
        (({**report(1), "format": 2},), "part-0.json is no report of verify"),
    ],
)
def test_what_does_not_belong_together_is_told(files, reports, message):
    with pytest.raises(ProjectError, match=message):
        merge_reports(files(*reports))


def test_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ProjectError, match=r"a\.json can't be read: No such file"):
        merge_reports([tmp_path / "a.json"])


def test_junit_has_a_suite_for_each_break_and_a_case_for_each_check():
    bad = proof(
        "35-02",
        Check("green", True),
        Check("red", False, "still <green>\x1b[0m"),
        Check("R2", False, "three lines", "two are the same"),
    )
    text = junit(report(1, proof("35-01"), bad, of=1, broken=["breaks/x.yaml:1:1: no"]))
    suites = ElementTree.fromstring(text)
    counts = {key: suites.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "1", "skipped": "1"}
    first, second, specs = suites
    assert (first.get("name"), first.get("time"), first.get("failures")) == ("35-01", "3.000", "0")
    (failure,) = second.findall("testcase/failure")
    assert failure.get("message") == "still <green>?[0m"
    (skipped,) = second.findall("testcase/skipped")
    assert skipped.get("message") == "two are the same (three lines)"
    assert specs.find("testcase").get("name") == "breaks/x.yaml"


def test_junit_of_a_report_without_a_shard_has_its_breaks_as_errors(files):
    suites = ElementTree.fromstring(junit(merge_reports(files(report(1, proof("35-01"))))))
    cases = suites.findall("testsuite[@name='specs']/testcase")
    assert [case.get("name") for case in cases] == ["35-02", "35-03"]


def test_rounds_that_are_the_same_are_steady():
    same = Round(frozenset({"a", "b"}), {"stall": "", "wrong": "was healthy"})
    assert unsteady([same, same, same]) == ""


def test_what_differs_between_rounds_is_counted():
    first = Round(frozenset({"a", "b"}), {"stall": ""})
    second = Round(frozenset({"b"}), {"stall": "promised stall, was crash"})
    assert unsteady([first, second, first]) == (
        "a went red in 2 of 3 rounds; "
        "stall kept its promise in 2 of 3 rounds: promised stall, was crash"
    )
