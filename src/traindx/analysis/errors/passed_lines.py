"""Which lines of the source a run is known to have passed, and what that leaves of a claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from traindx.analysis.errors.culprits import site_at
from traindx.analysis.errors.root_failure import last_part, root_failure
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Site
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import line_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.recordings.ranks import has_ended_well
from traindx.model.findings import Evidence, Finding, Findings, Strength, cite, cite_record
from traindx.model.run import Frame, Run
from traindx.tracebacks import own_frames

Line = tuple[str, int]  # of a file of the source
# what torch raises where sizes, types, devices or indices do not fit
MISFITS = frozenset({"RuntimeError", "IndexError", "ValueError", "TypeError", "AcceleratorError"})


def unless_passed(run: Run, found: Finding, line: Line | None) -> Findings:
    """Yield a claim that a line must fail, unless the run is known to have passed that line.

    Nothing else that was read takes the claim back. Steps of training that may be those of another
    program speak against it, and both are said. An error that tells of sizes itself comes first.
    """
    cause = found.shows
    if line is not None and has_passed(run, line):
        return
    steps, failure = _steps_seen(run), root_failure(run)
    is_named = failure is not None and last_part(failure.type) in MISFITS
    if cause is None or (steps is None and not is_named):
        yield found
        return
    yield replace(found, shows=None, suggests={cause: Strength.STRONG})
    if steps is not None:
        yield Finding(
            claim=f"Steps of training ran, which {cause} would have kept from running",
            strength=Strength.MODERATE,
            evidence=(steps,),
            against={cause: Strength.STRONG},
        )


def run_at(run: Run, line: Line) -> Line | None:
    """Return where a layer is run: its line in a forward pass, else where the chain is called."""
    for story in program_of(run).stories:
        if any(e.within and _is_at(e, line) for e in story.events):
            return line
        for call in story.does(Do.FORWARD):
            made = call.subject.site if call.subject is not None else None
            if made is not None and _covers(made, line):
                return line_of(call)
    return None


def has_passed(run: Run, line: Line) -> bool:
    """Tell whether a line is known to have run: itself, or because what comes after it began."""
    ran = _lines_at(run, _recorded_frames(run))
    if line in ran:
        return True
    began = _lines_at(run, (f for failure in run.failures for f in own_frames(failure)[-1:]))
    is_whole = has_ended_well(run)
    stories = program_of(run).stories if ran or began or is_whole else ()
    return any(_is_passed(story, line, ran | began, is_whole=is_whole) for story in stories)


def _is_passed(story: Story, line: Line, reached: set[Line], *, is_whole: bool) -> bool:
    here = [e for e in story.events if _is_at(e, line)]
    if is_whole and any(not e.guards for e in here):
        return True
    first: dict[Line, ProgramEvent] = {}
    for event in story.events:
        if line_of(event) in reached and not _is_at(event, line):
            first.setdefault(line_of(event), event)
    later = first.values()
    return any(e.order < after.order and _leads_to(e, after) for e in here for after in later)


def _leads_to(event: ProgramEvent, after: ProgramEvent) -> bool:
    """Tell whether every condition of an event holds where the later one is reached."""
    held = {(g.site.node, g.holds) for g in after.guards}
    return all((g.site.node, g.holds) in held for g in event.guards)


def _is_at(event: ProgramEvent, line: Line) -> bool:
    return _covers(event.site, line)


def _covers(site: Site, line: Line) -> bool:
    first = int(getattr(site.node, "lineno", 0))
    last = int(getattr(site.node, "end_lineno", None) or first)
    return site.module.path == line[0] and first <= line[1] <= last


def _recorded_frames(run: Run) -> Iterator[Frame]:
    """Yield where recorders saw the program: its steps, backward passes and evaluations."""
    for process in run.recording.processes if run.recording is not None else ():
        places = {s.place for s in process.samples} | {o.place for o in process.optimizers}
        places |= {e.place for e in process.evaluations}
        places = places.union(*(step.places for step in process.captured))
        for place in filter(None, places):
            yield Frame(place.file, place.line, place.function, place.code)


def _lines_at(run: Run, frames: Iterable[Frame]) -> set[Line]:
    """Return the lines of the statements that frames point at, where the source is what ran."""
    sites = (site_at(run, frame) for frame in frames)
    spans = (site.location for site in sites if site is not None)
    return {(at.file, n) for at in spans for n in range(at.line, at.end_line + 1)}


def _steps_seen(run: Run) -> Evidence | None:
    """Return what shows that steps of training ran."""
    for process in run.recording.processes if run.recording is not None else ():
        counts = process.counts
        if counts is not None and counts.steps:
            says = f"{counts.steps} steps of training ran"
            return cite_record(process, counts.line, says, step=counts.steps)
    loss = run.main_loss()
    if loss is None or len(loss) < 2:
        return None
    return cite(loss, f"{loss.origin.name} was logged {len(loss)} times", 0, -1)
