"""A diagnosis of source code as a linter prints it: one line per finding, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from traindx.causes import all_causes
from traindx.model.findings import Diagnosis, Finding, Hypothesis
from traindx.report import words


def lines_of(diagnosis: Diagnosis, *, verbose: bool = False) -> Iterator[str]:
    """Yield the findings by place, each with its cause and fix, and a closing line."""
    listed = {id(f) for h in diagnosis.root_causes for f in h.findings}
    for finding in sorted(diagnosis.findings, key=_place):
        yield from _finding_lines(diagnosis, finding, id(finding) not in listed, verbose)
    for failed in diagnosis.failed:
        yield f"{words.clean(failed.detector)} crashed: {words.clean(failed.error)}"
    reasons = Counter(words.clean(skipped.how) for skipped in diagnosis.skipped)
    for how, count in reasons.items():
        yield f"not checked: {how}" if count == 1 else f"not checked: {count} rules {how}"
    yield words.clean(diagnosis.summary)


def _place(finding: Finding) -> tuple[str, int, str]:
    where = finding.location
    return (where.file, where.line, finding.detector) if where else ("", 0, finding.detector)


def _finding_lines(
    diagnosis: Diagnosis, finding: Finding, is_remark: bool, verbose: bool
) -> Iterator[str]:
    cause = finding.shows or next(iter(finding.suggests), "")
    where = finding.location
    place = f"{words.clean(where.file)}:{where.line}: " if where else ""
    mark = " (remark)" if is_remark else ""
    yield f"{place}{cause}: {words.clean(finding.claim)}{mark}"
    hypothesis = _hypothesis(diagnosis, cause)
    if hypothesis is not None and hypothesis.remedies:
        yield f"    fix: {words.clean(hypothesis.remedies[0].change)}"
    if verbose:
        yield f"    detector: {finding.detector}, {finding.strength.value}"
        severity = all_causes()[cause].severity.value if cause in all_causes() else ""
        yield f"    severity: {severity}"
        for item in finding.evidence:
            yield f"    {words.clean(item.artifact)}, {item.locator}: {words.clean(item.says)}"
        if finding.patch:
            yield from (f"    {line}" for line in words.clean_block(finding.patch).splitlines())


def _hypothesis(diagnosis: Diagnosis, cause: str) -> Hypothesis | None:
    return next((h for h in diagnosis.hypotheses if h.cause == cause), None)
