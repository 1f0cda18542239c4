"""How much may be spent on looking: a share of the run's own time, not a rate."""

from __future__ import annotations

from math import ceil
from time import perf_counter

GRANT_S = 0.15  # spent before any step is let pass unseen: a short run is worth a look too
# What torch does to call us, and the caches that we leave cold, come on top of what we time: found
# by `python -m bench.passing_cost` (90 against 79 µs on a small model).
HIDDEN = 1.2
BLIND = 0.5  # of the cost of a step that passes, for one of which nothing is asked; measured there
PASSED = 0.6  # of what may be spent, for the steps that pass
BLIND_AFTER_S = 0.1  # spent on steps that pass: the first thousand are guarded, every one
DEBT_S = 0.05  # spent above the aim, before as few as possible are asked
BLOCK = 8  # steps that are blind, or not, together: the optimizers of a GAN take turns
MAX_BLOCKS = 16  # of which one is not blind
SEEN = 0.15  # of what may be spent, for the rows of the steps that do not pass
# Looks at steps 0, 1, 2 … 10, 13, 17, 22 … are taken whatever they cost: a short run gets as many
# as it needs, and in a long one they do not count.
GROWTH = 1.3
AIM = 0.75  # of the share: being called and cold caches cost too, and are not counted


class Budget:
    """Decides which steps are looked at closely, from what looking has cost so far."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.aim = AIM * share
        self.spent_s = 0.0
        self.started = perf_counter()
        self.looks = 0
        self.look_s = 0.0  # what the last looks cost, each
        self.looks_s = 0.0  # what all of them cost
        self.passed = 0  # steps that were let pass unseen
        self.passed_s = 0.0  # what they cost all the same
        self.asked_s = 0.0  # what those of them cost that are not blind
        self.blind = 0  # of them, those of which nothing was asked
        self.blocks = 1  # one in so many is not blind
        self._step = 0  # the last that was asked for
        self._next = 0.0  # to be looked at in any case

    def begin(self, cost_s: float) -> None:
        """Start to count: finding the models, which took so long, was a part of starting up."""
        self.spent_s = -cost_s  # the event that it was a part of is yet to be counted
        self.started = perf_counter()

    def overhead(self) -> float:
        """Return the share of the run's time that the recorder took."""
        elapsed = perf_counter() - self.started
        return self.spent_s / max(elapsed - self.spent_s, 1e-9)

    def allows(self, step: int) -> bool:
        """Tell whether this step is to be looked at closely."""
        self._step = step
        elapsed = perf_counter() - self.started
        if self.spent_s + self.look_s <= self.aim * elapsed:
            return True
        if step >= self._next:
            self._next = max(step + 1.0, step * GROWTH)
            return True
        return False

    def looked(self, cost_s: float) -> None:
        """Note what a look has cost."""
        self.looks += 1
        self.looks_s += cost_s
        self.look_s = cost_s if self.looks == 1 else 0.5 * (self.look_s + cost_s)

    def passes(self, cost_s: float) -> None:
        """Note what a part of a step that passes has cost, with what our clock does not see."""
        self.asked_s += HIDDEN * cost_s
        self._spend(HIDDEN * cost_s)

    def is_used_up(self) -> bool:
        """Tell whether even the cheap part is too much; what was granted at first is paid back."""
        elapsed = perf_counter() - self.started
        return self.spent_s > max(GRANT_S, self.aim * elapsed)

    def idle_steps(self, steps: int, step_s: float, *, may_be_blind: bool) -> int:
        """Return how many steps to let pass unseen so that even the cheap part stays in budget."""
        seen_s = (self.spent_s - self.looks_s - self.passed_s) / max(1, steps - self.passed)
        allowed = SEEN * self.aim * step_s
        if seen_s <= allowed or allowed <= 0:
            return 0
        idle = min(1000, int(seen_s / allowed))
        if self._next > self._step > 0:  # several optimizers may take turns
            idle = max(1, min(idle, int((self._next - self._step) * steps / self._step)))
        self.blocks = self._blocks(step_s) if may_be_blind else 1
        if self.blocks == 1:
            return idle
        cycles = max(1, idle // (BLOCK * self.blocks))
        self._spend(BLIND * self._asked_s() * cycles * BLOCK * (self.blocks - 1))
        return cycles * BLOCK * self.blocks

    def is_blind(self, idle: int) -> bool:
        """Tell whether nothing is asked of the step that has so many to come; the last are seen."""
        return idle // BLOCK % self.blocks > 0

    def _blocks(self, step_s: float) -> int:
        """Return of how many blocks one can be afforded whose losses are kept."""
        allowed, asked_s = PASSED * self.aim * step_s, self._asked_s()
        blind_s = BLIND * asked_s
        if asked_s <= allowed or self.passed_s < BLIND_AFTER_S:
            return 1
        is_in_debt = self.spent_s - self.aim * (perf_counter() - self.started) > DEBT_S
        if blind_s >= allowed or is_in_debt:
            return MAX_BLOCKS
        return min(MAX_BLOCKS, ceil((asked_s - blind_s) / (allowed - blind_s)))

    def _asked_s(self) -> float:
        """Return what a step costs that passes and is not blind."""
        return self.asked_s / max(1, self.passed - self.blind)

    def _spend(self, cost_s: float) -> None:
        self.spent_s += cost_s
        self.passed_s += cost_s
