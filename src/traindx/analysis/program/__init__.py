"""Understanding Python training code: names, bindings, training loops, shapes, patches.

Shared by every static detector. Nothing here judges, executes or imports what it reads.
"""

from __future__ import annotations

from traindx.analysis.program.project import Project, project_of

__all__ = ["Project", "project_of"]
