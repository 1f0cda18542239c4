"""Learning what a kind of line means, from its text with the digits masked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from traindx.model.metric_names import HIGHER_IS_BETTER, canonical, kind_of
from traindx.readers.columns import SETTINGS
from traindx.readers.formats.console.context import in_context
from traindx.readers.formats.console.known_forms import known_form
from traindx.readers.formats.console.lines import classify, is_class_report, is_no_report
from traindx.readers.formats.console.marks import Marks, strip_marks
from traindx.readers.formats.console.numbers import Number
from traindx.readers.formats.console.plan import DIGIT, Field, LinePlan
from traindx.readers.formats.console.tokens import Digits, Token, tokenize
from traindx.readers.formats.console.vocabulary import (
    FILLERS,
    GLOBAL,
    IDENTIFIERS,
    PHASE_WORDS,
    counts,
    counts_many,
    glued_counter,
    is_known,
    is_plain_error,
    measures,
    pick_name,
    step_rank,
    translate,
)

MAX_LENGTH = 8192  # of a line; what comes after it is not searched
MAX_TEMPLATE = 160
_VALUE = re.compile(r"0|(?i:nan|inf)")
_STRONG = frozenset({":", "=", ":=", "=>", "->", "→", "==", "≈", "~", "：", "＝", ":≈", "::"})
_WRAPPING = str.maketrans("", "", " \t\"'[]({)}\x02`*<\\$")
_UNIT_WORDS = frozenset({"s", "ms", "sec", "secs", "seconds", "min", "mins", "gb", "mb", "h", "it"})
_RATIO = re.compile(r"\s*/\s*$")
_TIMED = re.compile(r"(?<![a-z])time(?![a-z])", re.IGNORECASE)  # "Time", "batch_time"
_FIRST_OF_MANY = re.compile(r"\[\s*[^\s,\]]{1,30}\s*,\s*(?:-?0|nan)")
_DURATION = re.compile(r"0(?::0){1,2}")  # the last cell of fastai's rows
_BRACKETED_RATIO = re.compile(r"\s*\[\s*0\s*/")
_SUMMARY = re.compile(r"\s*\*\s+(?:Acc|Prec|acc|prec)")  # of ImageNet scripts after validation
_NEXT_MEAN = re.compile(r"\s+-?0\.0\s*\(\s*-?0\.0\s*\)")  # "Prec@1 05 100.000 (99.359)"
_MEAN = re.compile(r"\s*%?\s*\(\s*(?:avg:?\s*)?(-?0\.0(?:[eE][-+]?0)?)\s*%?\s*\)")
_LIST = re.compile(r"(?:\s*,\s*-?0\.0(?:[eE][-+]?0)?){2,}\s*(?:[|;]|$)")  # one of each of several
_NEXT_VALUE = re.compile(r"\s*[:=]\s*[-+]?(?:0|\.0|nan|inf)")
_NEXT_FRACTION = re.compile(r"\s+-?0\.0(?:[eE][-+]?0)?(?=\s|$)")
_LAST_FRACTION = re.compile(r"\s*:\s*-?(?:0\.0(?:[eE][-+]?0)?|nan)\s*$")
_VERBS = frozenset({"is", "was", "reached"})  # "Loss is nan", "val_loss reached 0.3"
_PROSE = frozenset({"return", "returns"})  # "return 10" is code
_LAYER = re.compile(  # a row of Lightning's summary of a model
    r"\s*0\s*\|\s*[\w.]+\s*\|\s*[A-Z]\w+(?:\[\w+\])?\s*\|\s*0(?:\.0)?\s*[KMBT]?\s*(?:\|.*)?$"
)
_NEXT_BRACKET = re.compile(r"\s*\]\s*\[\s*0")


@dataclass(slots=True)
class _Found:
    """A field before it is known whether the line is one that reports."""

    field: Field
    is_known: bool
    is_cell: bool = False


@dataclass(slots=True)
class _Walk:
    """A walk over the tokens of a line from left to right."""

    marks: Marks
    digits: Digits
    tokens: list[Token]
    said: list[Token] = field(default_factory=list)  # the phrase before the next number
    subject: str = ""  # a metric that was named and has no value yet
    phase: str | None = None
    phases: set[str] = field(default_factory=set)
    found: list[_Found] = field(default_factory=list)
    steps: list[tuple[int, Number, Number | None]] = field(default_factory=list)
    is_counted: bool = False  # the subject was followed by its step, its value comes next
    epoch: Number | None = None
    lengths: list[Number] = field(default_factory=list)  # plural counters, or settings

    def run(self) -> None:
        """Give every number its meaning."""
        i = 0
        end = 0
        while i < len(self.tokens):
            token = self.tokens[i]
            gap = self.marks.text[end : token.start]
            if token.kind == "special" and not self._is_value(gap):
                token = Token("word", token.start, token.end, token.text)
            if token.kind == "word":
                self._hear(token, gap, end)
            elif token.kind == "noise":
                self._break()
            else:
                over = self._over(i)
                self._place(token, over, gap)
                if not self.said or self.said[-1] is not token:
                    self._break()
                i += 0 if over is None else over[1]
                token = token if over is None else over[0]
            end = token.end
            i += 1
        self._break()

    def _is_value(self, gap: str) -> bool:
        """Tell ``loss nan`` from ``number of nan iterations``."""
        bound = gap.translate(_WRAPPING)
        if bound in _STRONG:
            return True
        said = [t.text for t in self.said[-2:]]
        if len(said) > 1 and said[-1].lower() in _VERBS:
            said.pop()
        return bound == "" and bool(said) and measures(said[-1])

    def _hear(self, token: Token, gap: str, end: int) -> None:
        counter = glued_counter(token.text)
        if counter is not None:
            self._break()
            kind, at = counter
            number = Number((self.digits.index(token.start + at),))
            self._count(kind, number, None, 2)
            return
        lowered = token.text.lower()
        if not self.said and gap in {"", " "} and end and lowered in _UNIT_WORDS:
            return
        if self.said and gap.strip("\x02") not in {" ", ""}:
            self._break()
        spoken = translate(lowered)
        if spoken in PHASE_WORDS:
            self.phase = PHASE_WORDS[spoken]
            self.phases.add(self.phase)
        self.said.append(token)

    def _break(self) -> None:
        if self.said:
            name = pick_name(self._words(), is_bound=True)
            if name and measures(name):
                self.subject = name
        self.said = []

    def _words(self) -> list[str]:
        return [w for t in self.said for w in translate(t.text).split()]

    def _over(self, i: int) -> tuple[Token, int] | None:
        """Return what the number is a part of, as in ``3/10`` and ``3 of 10``, and its distance."""
        text, tokens = self.marks.text, self.tokens
        if i + 1 < len(tokens) and tokens[i + 1].kind == "number":
            is_ratio = _RATIO.match(text[tokens[i].end : tokens[i + 1].start])
            return (tokens[i + 1], 1) if is_ratio and not tokens[i].unit else None
        if i + 2 < len(tokens) and tokens[i + 1].text.lower() in {"of", "out"}:
            after = tokens[i + 2]
            is_near = text[tokens[i].end : after.start].lower() in {" of ", " out of "}
            return (after, 2) if after.kind == "number" and is_near else None
        return None

    def _place(self, token: Token, over: tuple[Token, int] | None, gap: str) -> None:
        value, total = token.value, over[0].value if over else None
        if value is None:
            return
        said = self._words()
        while said and said[-1].lower() in PHASE_WORDS and len(said) > 1 and "\x02" in gap:
            said = said[:-1]
        bound = gap.translate(_WRAPPING)
        if bound == "" and len(said) > 1 and said[-1].lower() in _VERBS and not over:
            named = pick_name(said, is_bound=True)
            # "the grad norm is nan, skipping" tells of one step, and of no other
            is_told = measures(named) and kind_of(canonical(named)) != "grad_norm"
            bound = "=" if is_told else bound
        if self._place_counter(token, over, gap, said, bound):
            return
        before = len(self.found)
        if self.is_counted and not said:
            self.is_counted = False
            self._measure(token, total, self.subject, True)
            return
        if bound == "" and over is None and self._counts_for_its_metric(token, said):
            self._count("step", value, None, 2)
            self.is_counted = True
            return
        if bound == "" and said and self._is_named_by(token):
            return
        if bound in _STRONG or (bound.startswith(":") and len(bound) < 3):
            self._measure(token, total, pick_name(said, is_bound=True), True)
        elif bound in {"|", "│", "┃"} and self._is_cell():
            self._measure(token, total, " ".join(said[-4:]), True)
            for found in self.found[before:]:
                found.is_cell = True
        elif bound in {"", "-", "#"} and said and "(" not in gap:
            self._measure(token, total, pick_name(said, is_bound=False), False)
        if len(self.found) > before:
            self.said = []

    def _counts_for_its_metric(self, token: Token, said: list[str]) -> bool:
        """Tell the step in ``Train loss 64998 0.3027`` and in ``Validation loss 61000: 0.32``."""
        value = token.value
        if value is None or not value.is_integer or value.is_negative or token.unit or not said:
            return False
        if self.steps or kind_of(canonical(" ".join(said))) != "loss":
            return False
        text, at = self.marks.text, token.end
        if _NEXT_FRACTION.match(text, at):
            return True
        has_phase = any(w.lower() in PHASE_WORDS for w in said)
        return has_phase and not self.found and _LAST_FRACTION.match(text, at) is not None

    def _is_named_by(self, token: Token) -> bool:
        """Take a number into the name of the next one: ``mAP 0.5 : 0.31``."""
        text, end = self.marks.text, token.end
        is_tag = token.value is not None and token.value.is_integer
        is_score = kind_of(canonical(" ".join(self._words()))) in HIGHER_IS_BETTER
        is_tag &= bool(
            _NEXT_MEAN.match(text, end) or (is_score and _NEXT_FRACTION.match(text, end))
        )
        if token.unit or not (is_tag or _NEXT_VALUE.match(text, end)):
            return False
        self.said.append(token)
        return True

    def _place_counter(
        self, token: Token, over: tuple[Token, int] | None, gap: str, said: list[str], bound: str
    ) -> bool:
        value, total = token.value, over[0].value if over else None
        is_whole = value is not None and value.is_integer and not value.is_negative
        if value is None or token.unit or (over and over[0].unit) or value.special is not None:
            return False
        kind = counts(said, has_total=over is not None)
        if bound in _STRONG and len(said) > 1 and measures(pick_name(said, is_bound=True)):
            return False
        if kind and (bound in _STRONG or bound in {"", "#", "-", "|", "│", "┃"}):
            if kind == "step" and not is_whole:
                return False
            self._count(kind, value, total, step_rank(said))
            return True
        if counts_many(said) and bound in _STRONG and is_whole:
            self.lengths.append(value)
            return True
        after = self.marks.text[over[0].end if over else token.end :]
        only_phase = len(said) == 1 and said[0].lower() in PHASE_WORDS
        if only_phase and is_whole and over is None and _BRACKETED_RATIO.match(after):
            self._count("epoch", value, None, 2)  # timm: "Train: 3 [ 50/1251"
            return True
        if over is None or not is_whole or total is None or not total.is_integer:
            return False
        if "(" in gap and not said and self.found and self.marks.text[token.start - 1] == "(":
            before = self.marks.text[: token.start - 1].rstrip()
            last = kind_of(canonical(self.found[-1].field.name))
            if before.endswith("%") or (last in HIGHER_IS_BETTER and before[-1:].isdigit()):
                return True  # "Accuracy: 71.38% (7138 / 10000)" says it twice
        if said and not only_phase and "[" not in gap:
            return False
        if said and measures(" ".join(said)):
            return False
        is_first = "[" in gap and self.epoch is None and _NEXT_BRACKET.match(after)
        self._count("epoch" if is_first else "step", value, total, 0 if "(" in gap else 1)
        return True

    def _count(self, kind: str, value: Number, total: Number | None, rank: int) -> None:
        if kind == "epoch":
            if self.epoch is None or self.epoch.fraction is not None:
                self.epoch = value
        else:
            self.steps.append((rank, value, total))

    def _is_cell(self) -> bool:
        """Tell whether the phrase is a cell of its own: a bar or nothing stands before it."""
        before = self.marks.text[: self.said[0].start].rstrip() if self.said else "?"
        return not before or before[-1] in "|│┃"

    def _measure(self, token: Token, total: Number | None, name: str, is_bound: bool) -> None:
        text = "data_time" if self._is_data_time(token, name) else self._named(name, is_bound)
        if text == "norm" and any(kind_of(canonical(f.field.name)) == "loss" for f in self.found):
            text = "grad norm"  # nanoGPT's kin: "loss: 3.2 | norm: 0.8"
        if not text and is_bound and self._is_beside_loss(token, name):
            text = "score"  # PyG's examples: "Loss: 1.9, Train: 0.81, Val: 0.71, Test: 0.72"
        lowered = text.lower()
        if (
            not text
            or lowered == "no log"
            or lowered in IDENTIFIERS
            or lowered.rsplit(" ", 1)[-1] in IDENTIFIERS
        ):
            return
        known = is_known(text)
        if not is_bound and not (known or self._is_delimited(token)):
            return
        if token.value is None or (is_plain_error(text) and _is_code(token, is_bound)):
            return
        if _LIST.match(self.marks.text, token.end) or (lowered in _PROSE and not is_bound):
            return
        is_score = kind_of(canonical(text)) in HIGHER_IS_BETTER
        if is_score and _FIRST_OF_MANY.match(self.marks.text[token.start - 1 :]):
            return  # nnU-Net: "Pseudo dice [0.0, 0.84, 0.91]" is one of each class
        is_share = is_score and token.value.is_integer
        over = total if is_share and total is not None and total.is_integer else None
        start, end = (self.said[0].start, self.said[-1].end) if self.said else (0, 0)
        runs = self.digits.within(start, end) if "0" in text else ()
        if len(runs) != text.count("0"):
            runs = self._runs_of(text)
        value = self._value_of(token, token.value)
        is_spent = len(self.phases) > 1 and canonical(text).startswith(("time/", "throughput"))
        phase = None if is_spent else self.phase  # a line of both tells the time of both
        made = Field(text.replace("0", DIGIT), value, phase, over, runs, token.unit == "%")
        self.found.append(_Found(made, known))
        self.subject = ""

    def _is_beside_loss(self, token: Token, name: str) -> bool:
        """Tell a score of each split, told by the name of the split alone, after the loss."""
        is_fraction = token.value is not None and token.value.fraction is not None
        is_told = any(kind_of(canonical(f.field.name)) == "loss" for f in self.found)
        return is_fraction and is_told and name.lower() in PHASE_WORDS and not self.subject

    def _value_of(self, token: Token, value: Number) -> Number:
        """Return a value, or the mean behind it: of an evaluation the whole counts, no batch."""
        mean = _MEAN.match(self.marks.text, token.end) if self.phase in {"val", "test"} else None
        own = None if mean is None else self.digits.number(mean[1], mean.start(1))
        return value if own is None else own

    def _is_data_time(self, token: Token, name: str) -> bool:
        """Tell whether a meter says how long a step waited: ``Time 0.31 (0.37) Data 0.02 (0.07)``.

        Elsewhere the word only fills a sentence.
        """
        said = [t.text.lower() for t in self.said[-2:]]
        is_timed = _TIMED.search(self.marks.text) is not None
        is_plain = not name and said[-1:] == ["data"] and is_timed
        is_seconds = token.value is not None and token.value.fraction is not None
        return is_seconds and (is_plain or (name.lower() == "time" and said == ["data", "time"]))

    def _named(self, name: str, is_bound: bool) -> str:
        """Return the name of a value; a bare phase or nothing takes the subject of the line."""
        if self.subject and (not name or name.lower() in PHASE_WORDS):
            return self.subject if is_bound or name else ""
        if self.subject and is_bound and not is_known(name):
            rest = {w.lower() for w in name.split()}
            if rest & set(PHASE_WORDS) or rest <= FILLERS:
                return self.subject
        return "" if name.lower() in PHASE_WORDS else name

    def _runs_of(self, name: str) -> tuple[int, ...]:
        """Return the digits of a name, word by word, nearest to the number first."""
        runs: list[int] = []
        wanted = [w for w in name.split() if "0" in w]
        for token in reversed(self.tokens):
            if wanted and token.kind == "word" and token.text == wanted[-1]:
                runs = [*self.digits.within(token.start, token.end), *runs]
                wanted.pop()
        return tuple(runs)

    def _is_delimited(self, token: Token) -> bool:
        """Tell whether name and number fill the space between two bars or commas."""
        if not self.said or len(self.said) > 2:
            return False
        before = self.marks.text[: self.said[0].start].rstrip()
        after = self.marks.text[token.end :].lstrip()
        return before[-1:] in {"|", ","} and (not after or after[0] in "|,")


def _is_code(token: Token, is_bound: bool) -> bool:
    """Tell the code of an error from its rate."""
    is_whole = token.value is not None and token.value.is_integer
    return not is_bound or (is_whole and not token.unit)


def learn(masked: bytes) -> LinePlan:
    """Return what a kind of line means."""
    text = masked[:MAX_LENGTH].decode("utf-8", errors="replace")
    marked = classify(text)
    if _VALUE.search(text) is None or (marked.is_header and is_class_report(text)):
        return marked
    digits = Digits(text)
    if (known := known_form(text, digits)) is not None:
        return known
    if ("|" in text and _LAYER.match(text) is not None) or is_no_report(text):
        return marked
    marks = strip_marks(text, digits)
    walk = _Walk(marks, digits, tokenize(marks.text, digits), epoch=marks.epoch)
    if _SUMMARY.match(text) or "Saving dict for global step 0" in text:  # an Estimator's result
        walk.phase = "val"
    walk.run()
    return _plan(walk, marked)


def _plan(walk: _Walk, marked: LinePlan) -> LinePlan:
    marks = walk.marks
    step, total, epoch = _counters(walk)
    reports = step is not None or epoch is not None
    reports = reports or any(f.is_known or f.is_cell for f in walk.found)
    if "{" in marks.text and _is_configuration([f.field.name for f in walk.found]):
        return marked
    fields = in_context([f.field for f in walk.found], walk.marks.text) if reports else ()
    cells = 0
    if not walk.found and walk.epoch is None:
        fields, cells, step, total = _row(walk, step, total)
    rank = marks.rank
    is_label = marks.label is not None and step is None and epoch is None and bool(fields)
    if marks.label is not None:
        step, rank = (marks.label, rank) if is_label else (step, marks.label)
    if not fields and step is None and epoch is None:
        return marked
    has_own = "e" * (epoch is not None) + "s" * (step is not None) + "l" * is_label
    return replace(
        marked,
        template=f"{has_own} {cells} {_template(walk)}",
        fields=fields,
        step=step,
        total=total,
        epoch=epoch,
        rank=rank,
        is_label=is_label,
        is_bar=marks.is_bar,
        is_cell=any(f.is_cell for f in walk.found),
        sets_clock=not walk.phases or "train" in walk.phases,
        cells=cells,
        heading=_announced(marked, epoch) if not fields else None,
        is_ruler=False,
    )


def _is_configuration(names: list[str]) -> bool:
    """Tell a dict of settings from one of metrics: a search prints one before each run."""
    kinds = {kind_of(canonical(n)) for n in names if measures(n)}
    return kinds <= {"lr"} and len(SETTINGS & {n.lower() for n in names}) > len(kinds) // 2


def _counters(walk: _Walk) -> tuple[Number | None, Number | None, Number | None]:
    """Return the step, its total and the epoch: the best counter of the line, or its bar's."""
    marks = walk.marks
    epoch = walk.epoch
    steps = sorted(walk.steps, key=lambda s: -s[0])
    step, total = (steps[0][1], steps[0][2]) if steps else (None, None)
    if step is None and walk.lengths and walk.found:
        step = walk.lengths[0]
    if marks.step is None or (steps and steps[0][0] >= GLOBAL):
        return step, total, epoch
    if marks.counts_epochs and epoch is None:
        return step, total, marks.step
    return marks.step, marks.total, epoch


def _announced(marked: LinePlan, epoch: Number | None) -> str | None:
    """Return the phase that the line announces; a new epoch ends the one before."""
    return "" if marked.heading is None and epoch is not None else marked.heading


def _template(walk: _Walk) -> str:
    said = " ".join(t.text for t in walk.tokens if t.kind == "word")
    return said.lower()[:MAX_TEMPLATE]


def _row(
    walk: _Walk, step: Number | None, total: Number | None
) -> tuple[tuple[Field, ...], int, Number | None, Number | None]:
    """Read a line of nothing but numbers as a row of a table; its header will name the cells."""
    tokens = [t for t in walk.tokens if t.kind != "special" or t.value is not None]
    cells: list[Field] = []
    count = 0
    skip = False
    for i, token in enumerate(tokens):
        if skip:
            skip = False
            continue
        gap = walk.marks.text[tokens[i - 1].end if i else 0 : token.start]
        if gap.translate(_WRAPPING).strip("|│┃,:" if i else "|│┃,:#") or (i and not gap):
            return (), 0, step, total
        if [t.text for t in tokens[i : i + 2]] == ["No", "log"]:
            skip = True  # the Trainer's table, before it has logged a training loss
        elif token.kind == "word":
            if count or token.text.lower() != "all":
                return (), 0, step, total
        elif token.value is not None:
            over = walk._over(i)
            skip = over is not None
            cells.append(Field(f"#{count}", token.value))
        elif not _DURATION.fullmatch(token.text):
            return (), 0, step, total
        count += 1
    if len(cells) < 3:
        return (), 0, step, total
    marks = walk.marks
    return tuple(cells), count, marks.step, marks.total
