"""Everything that can be said about specs without running anything, all findings at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from breaklab.author.new import TODO
from breaklab.author.nodeids import missing_test
from breaklab.author.pristine import pristine_sources
from breaklab.errors import BreaklabError, Finding, ProjectError, SiteError, SpecError
from breaklab.i18n import _
from breaklab.inject.diff import fix_diff
from breaklab.inject.edit import inject
from breaklab.inject.rules import static_findings, text_findings
from breaklab.model import BreakSpec, Lab, Outcome, Project, RetiredSpec, Text
from breaklab.spec.breaks import TEXT_KEYS, load_spec, place_of
from breaklab.spec.catalogue import Catalogue, load_catalogue
from breaklab.spec.project import lab_among, load_labs, source_file

_BY_NUMBERS = (Outcome.DIVERGED, Outcome.WRONG)
CHECKED_RULES = ("R1", "R2", "R4", "R7", "R8")  # that need no run


def lint(project: Project, paths: Sequence[Path] | None = None) -> list[Finding]:
    """Return every finding of the specs in ``paths``, or of all specs of a project.

    Nothing is run, and no code of a pack is imported. A rule that a spec waives is no finding; a
    waiver that is not needed is one.
    """
    return lint_paths(project, paths)[0]


def lint_paths(project: Project, paths: Sequence[Path] | None = None) -> tuple[list[Finding], int]:
    """Return the findings as :func:`lint` does, and how many specs were looked at.

    Args:
        project: whose labs the specs are for.
        paths: specs, or folders of specs; empty or None: every pack of the project.
    """
    catalogue = load_catalogue(project)
    broken, specs = _chosen(catalogue, paths)
    findings = [finding for error in broken for finding in error.findings]
    try:
        labs = load_labs(project)
    except SpecError as error:
        return [*findings, *error.findings], len(broken) + len(specs)
    linter = _Linter(project, labs, catalogue, pristine_sources(project))
    linter.known.update(spec.bug_id for spec in specs)
    for spec in specs:
        if isinstance(spec, BreakSpec):
            findings += linter.spec(spec)
    findings.sort(key=lambda f: (f.location.path, f.location.line, f.location.column))
    return findings, len(broken) + len(specs)


def _chosen(
    catalogue: Catalogue, paths: Sequence[Path] | None
) -> tuple[list[SpecError], list[BreakSpec | RetiredSpec]]:
    """Return the specs to look at: those that can't be used, and those that can."""
    usable: list[BreakSpec | RetiredSpec] = [*catalogue.specs.values()]
    usable += catalogue.retired.values()
    known = {spec.path.resolve(): spec for spec in usable}
    broken = {path.resolve(): error for path, error in catalogue.broken.items()}
    if not paths:
        return list(broken.values()), list(known.values())
    for path in _files(paths):
        if path in known or path in broken:
            continue
        try:
            known[path] = load_spec(path)
        except SpecError as error:
            broken[path] = error
    files = set(_files(paths))
    return (
        [error for path, error in broken.items() if path in files],
        [spec for path, spec in known.items() if path in files],
    )


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        files += [file.resolve() for file in found]
    return files


@dataclass
class _Linter:
    """Looks at one spec after the other; labs, sources and tests are read once."""

    project: Project
    labs: list[Lab]
    catalogue: Catalogue
    overlay: Mapping[Path, bytes]
    slugs: Counter[str] = field(init=False)
    known: set[str] = field(init=False)  # bug ids

    def __post_init__(self) -> None:
        self.known = set(self.catalogue.specs)
        self.slugs = Counter(spec.slug for spec in self.catalogue.specs.values())

    def spec(self, spec: BreakSpec) -> list[Finding]:
        """Return the findings of one spec that could be loaded."""
        message = _("still to be written")
        findings = [_finding(spec, key, "todo", message) for key in unfinished(spec)]
        findings += [*self._references(spec), *self._tests(spec), *self._outcomes(spec)]
        try:
            findings += self._source(spec)
        except BreaklabError as error:
            rule = "site" if isinstance(error, SiteError) else "inject"
            findings.append(_finding(spec, "inject", rule, error.message, error.hint))
            findings += self._rules(spec, text_findings(spec), ("R8",))
        return findings

    def _references(self, spec: BreakSpec) -> list[Finding]:
        """Other breaks that this one names, or whose name it takes."""
        findings = []
        if self.slugs[spec.slug] > 1:
            message = _("another break has the slug `{slug}`").format(slug=spec.slug)
            findings.append(_finding(spec, "slug", "duplicate-slug", message))
        for index, bug_id in enumerate(spec.prerequisites):
            if bug_id not in self.known or bug_id == spec.bug_id:
                message = _("the prerequisite {bug_id} is no other break").format(bug_id=bug_id)
                key = f"prerequisites[{index}]"
                findings.append(_finding(spec, key, "prerequisite", message))
        return findings

    def _tests(self, spec: BreakSpec) -> list[Finding]:
        if not spec.red:
            message = _("no test is promised to go red: nobody could observe this break")
            hint = _("measure it: breaklab refresh --red {bug_id}").format(bug_id=spec.bug_id)
            return [_finding(spec, "expect.red", "R3", message, hint)]
        findings = []
        for index, nodeid in enumerate(spec.red):
            reason = missing_test(self.project.root, nodeid)
            if reason:
                findings.append(_finding(spec, f"expect.red[{index}]", "red", reason))
        return findings

    def _outcomes(self, spec: BreakSpec) -> list[Finding]:
        """Outcomes that are told by a lab's numbers, promised of a lab that reports none."""
        try:
            if lab_among(self.labs, spec).metrics is not None:
                return []
        except ProjectError:
            return []  # looking for its source finds that, too
        message = _("a run can't be told to be {outcome}: the lab has no `metrics`")
        hint = _("promise healthy, or let the lab report numbers, see `metrics` in lab.yaml")
        return [
            _finding(
                spec,
                f"expect.runs[{index}].outcome",
                "outcome",
                message.format(outcome=promise.outcome),
                hint,
            )
            for index, promise in enumerate(spec.runs)
            if promise.outcome in _BY_NUMBERS
        ]

    def _source(self, spec: BreakSpec) -> list[Finding]:
        """What the source says: one site, the hard rules, the fix."""
        lab = lab_among(self.labs, spec)
        path = source_file(lab, spec)
        if spec.inject.codemod:
            return self._rules(spec, text_findings(spec), ("R8",))
        pristine = self.overlay.get(path)
        if pristine is None:
            pristine = path.read_bytes()
        broken = inject(pristine, spec.inject, path=spec.inject.file).source
        findings = self._rules(spec, static_findings(spec, pristine, broken), CHECKED_RULES)
        if broken == pristine:
            message = _("the injection changes nothing")
            findings.append(_finding(spec, "inject", "site", message))
        elif spec.fix_diff != fix_diff(broken, pristine, spec.inject.file):
            message = _("`fix_diff` is not the way from the broken source to the original")
            if not spec.fix_diff:
                message = _("the key `{key}` is missing").format(key="fix_diff")
            hint = _("write it anew: breaklab refresh {bug_id}").format(bug_id=spec.bug_id)
            findings.append(_finding(spec, "fix_diff", "fix-diff", message, hint))
        return findings

    def _rules(
        self, spec: BreakSpec, findings: list[Finding], checked: tuple[str, ...]
    ) -> list[Finding]:
        """Return the findings that are not waived, and the waivers that are not needed."""
        left = [finding for finding in findings if finding.rule not in spec.waive]
        broken = {finding.rule for finding in findings}
        for rule in spec.waive:
            if rule in checked and rule not in broken:
                message = _("{rule} is waived, but this break keeps it").format(rule=rule)
                left.append(_finding(spec, f"waive.{rule}", "waiver", message))
        return left


def unfinished(spec: BreakSpec) -> list[str]:
    """Return the key paths, such as ``hints[0].es``, of the texts that are still to be written."""
    texts = {
        "family": Text({"": spec.family}),
        "slug": Text({"": spec.slug}),
        **{key: getattr(spec, key) for key in TEXT_KEYS},
        **{f"hints[{index}]": hint for index, hint in enumerate(spec.hints)},
        **{f"sources[{index}]": Text({"": source}) for index, source in enumerate(spec.sources)},
    }
    return [
        f"{key}.{language}" if language else key
        for key, text in texts.items()
        for language, value in text.by_language.items()
        if value.strip() == TODO
    ]


def _finding(spec: BreakSpec, key: str, rule: str, message: str, hint: str = "") -> Finding:
    return Finding(place_of(spec, key), rule, message, hint)
