"""A diagnosis of training code alone: only source can be asked for, and only faults are told."""

from __future__ import annotations

from dataclasses import replace

from traindx.analysis.program import project_of
from traindx.analysis.program.training.program import program_of
from traindx.analysis.time_limit import limited
from traindx.diagnosis.engine import diagnose
from traindx.model.findings import Diagnosis, Skipped, Status
from traindx.model.run import Run


def diagnose_code(run: Run, *, deadline: float | None = None) -> Diagnosis:
    """Diagnose a run that is source and nothing else; what other artifacts would show is no gap."""
    with limited(deadline):
        return _diagnosed(run, deadline)


def _diagnosed(run: Run, deadline: float | None) -> Diagnosis:
    # no run suffers from anything yet: a remark is as good as a fault
    diagnosis = replace(diagnose(run, deadline=deadline), asides=frozenset())
    missed = tuple(s for s in diagnosis.skipped if not s.detector or not s.needs)
    skipped = (*missed, *_unread(run))
    if diagnosis.root_causes:
        return replace(diagnosis, skipped=skipped)
    count = f"{len(run.sources)} {'file' if len(run.sources) == 1 else 'files'}"
    summary = f"No fault shown in {count}." if run.sources else "No file here uses torch."
    late = sum(bool(s.detector) for s in missed)
    if late:
        summary = f"{summary[:-1]}, but {late} rules had no time to look."
    # of code alone nothing more can be asked; whether a run of it is healthy is not claimed
    is_clean = run.sources and not late and not any(f.is_symptom for f in diagnosis.findings)
    status = Status.HEALTHY if is_clean else diagnosis.status
    questions = () if is_clean else diagnosis.questions
    return replace(diagnosis, summary=summary, skipped=skipped, status=status, questions=questions)


def _unread(run: Run) -> tuple[Skipped, ...]:
    """What was not looked at: what does not parse or train, and the end of what is too large."""
    project = project_of(run)
    known = {m.path for m in (*project.modules, *project.background)}
    broken = [s.path for s in run.sources if s.path not in known]
    unread = [Skipped("", (p,), f"{p}: not Python that can be parsed") for p in broken]
    if project.background:
        count = f"{len(project.background)} of {len(run.sources)} files"
        how = f"{count} do not train and are read only where others use them; name one to check it"
        unread.append(Skipped("", ("training code",), how))
    return (*unread, *_cut_short(run))


def _cut_short(run: Run) -> tuple[Skipped, ...]:
    """The files whose programs are too large to be followed to their end."""
    stories = program_of(run).stories
    cut = dict.fromkeys(s.execution.module.path for s in stories if s.execution.gave_up)
    if not cut:
        return ()
    count = f"{len(cut)} of {len(run.sources)} files"
    how = f"{count} are too large to be followed to their end, {next(iter(cut))} first"
    return (Skipped("", ("training code",), f"{how}; name one to check it by itself"),)
