"""Events: warnings that matter, resumed runs, boundaries, skipped steps, kills, full disks."""

from __future__ import annotations

import re

# no event without one of these; most kinds of lines are done after this
NOTABLE = re.compile(
    r"(?i)warn|resum|restor|continu|checkpoint|overflow|loss.?scal|kill|sigterm|sigint|\boom\b"
    r"|out of memory|time limit|preempt|no space left|quota exceeded|stage|phase|curriculum|unfre"
    r"|unfroze|switch|boundary|cancelled|skipp|degrees of freedom|is zero|mixed precision"
    r"|amp: checks passed"
)
_LEVEL = re.compile(r"\b(?:WARN(?:ING)?|ERROR|CRITICAL|W)\b|(?i:\bwarning\b:?)|^\[W|\[W\d|^W\d{4}")
_PYTHON = re.compile(r"\b(\w*Warning): ?(.*)")
_DULL = re.compile(
    r"(?:Pending)?Deprecation|FutureWarning|ImportWarning|ResourceWarning|InsecureRequest|SyntaxWarn"
    r"|ExperimentalFeature|NotOpenSSL"
)
# what a logger's warning has to be about to matter for training
_MATTERS = re.compile(
    r"(?i)\bnan\b|\binf\b|overflow|gradient|\bgrads?\b|\bloss\b|learning.?rate|\blr\b|scheduler"
    r"|optimi[sz]er|unused|mismatch|missing|unexpected|not found in|random(?:ly)? init|newly init"
    r"|truncat|corrupt|skipp|too (?:slow|long|small|large)|slow|memory|timeout|timed out|retry"
    r"|bottleneck|empty|degrees of freedom|diverg|not (?:load|match|used|call|converg)|fallback"
    r"|falling back|straggler|recompil|graph break|dropp|frozen|requires_grad|eval mode|train mode"
    r"|shuffle|num_workers|precision|worker|deadlock|duplicate|ignor"
)
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("disk-full", re.compile(r"(?i)no space left on device|disk quota exceeded")),
    (
        "oom",
        re.compile(
            r"(?i)cuda out of memory|out of memory\. tried|outofmemoryerror"
            r"|cuda error: out of memory|resource_?exhausted.{0,60}(?:oom|out of memory)"
            r"|cublas_status_alloc_failed"
        ),
    ),
    (
        "killed",
        re.compile(
            r"^\W*Killed\W*$|(?i:oom.?kill)|(?i:due to (?:time limit|preemption))"
            r"|(?<!closing signal )\bSIG(?:TERM|KILL)\b|(?i:out of memory: kill)|(?i:\bpreempted\b)"
            r"|(?i:received (?:signal|sigterm))"
            r"|\bKilled\s+(?:python|\S*/?python)|(?i:died with.{0,20}signals?\.)|CANCELLED AT"
            r"|(?i:(?<!is )killed by signal)|(?i:job .{0,40}(?:cancelled|killed|preempted))"
            r"|(?i:^\W*terminated\W*$)"
        ),
    ),
    (
        "skipped-step",
        re.compile(
            r"(?i)gradient overflow|overflow detected|skipping (?:this )?(?:step|update|optimizer)"
            r"|skipped (?:step|update)|reduc\w* loss.?scale|loss.?scale\w* (?:reduced|to)\b"
            r"|overflow!|attempted loss scale"
        ),
    ),
    (
        "resume",
        re.compile(
            r"(?i)\bresum(?:ing|ed|e)\b(?!\s*[:=]\s*(?:none|false|null|['\"]{2}))"
            r"|(?:re)?load(?:ed|ing)\b.{0,30}\bcheckpoint|restor(?:ed|ing)\b.{0,60}(?:checkpoint|states?\b|ckpt)"
            r"|continu(?:e|ing) (?:training|from)|=> loaded checkpoint"
        ),
    ),
    (
        # what Lightning, timm and Ultralytics say of themselves
        "half-precision",
        re.compile(
            r"Using 16bit (?:\w+ )?Automatic Mixed Precision|Training in mixed precision"
            r"|AMP: checks passed"
        ),
    ),
    ("empty-loader", re.compile(r"Total length of `\w+` across ranks is zero")),
    (
        "boundary",
        re.compile(
            r"(?i)\bcurriculum\b|(?:^|[^\w])(?:entering|starting|start|begin(?:ning)?|switch(?:ing|ed)?"
            r"|moving|advancing)\b.{0,30}\b(?:stage|phase)\b|^\W*(?:stage|phase)\s*\d+\s*(?:/\s*\d+)?\s*(?:[:.\-|=]|$|start|begin)"
            r"|switch(?:ing|ed)?\b.{0,40}\b(?:dataset|data|corpus|split|sequence|resolution|optimi[sz]er|loss)"
            r"|\bunfre(?:eze|ezing|ezes)\b|\bunfroze\w*|\bboundary\b"
            r"|closing dataloader mosaic"
        ),
    ),
)  # fmt: skip
_NOT_RESUMED = re.compile(
    r"(?i)pre-?trained|download|huggingface|tokenizer|no checkpoint|not (?:found|resum|load)"
    r"|from scratch|auto_?resume\s*[:=]|shards|can be resumed|to resume|resume_from\w*\s*[:=]"
    r"|unable|fail|saved|saving|some weights"
)
LIMITS = {"warning": 200, "skipped-step": 500}  # told one by one; more are only counted
DEFAULT_LIMIT = 100
MAX_TEXT = 300
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def recognise(line: str) -> tuple[str, str] | None:
    """Return the kind of event that a line tells of, and its text."""
    text = _COLOUR.sub("", line).strip()
    for kind, pattern in _PATTERNS:
        if pattern.search(text) and not (kind == "resume" and _NOT_RESUMED.search(text)):
            return kind, text[:MAX_TEXT]
    python = _PYTHON.search(text)
    if python is not None:
        if _DULL.search(python[1]) or "deprecated" in python[2]:
            return None
        # which statistic has too few values shows in the file that warned
        is_told_by_file = "degrees of freedom" in python[2]
        return "warning", (text if is_told_by_file else python[0])[:MAX_TEXT]
    if _LEVEL.search(text[:200]) and _MATTERS.search(text):
        return "warning", text[:MAX_TEXT]
    return None
