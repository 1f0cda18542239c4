"""The boundary between the user's training and what listens to it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from . import host

if TYPE_CHECKING:
    from .session import Session

Method = TypeVar("Method", bound=Callable[..., Any])


def event(method: Method) -> Method:
    """Guard a listener: what it costs is counted, and its first failure is the last one."""

    @functools.wraps(method)
    def guarded(self: Session, *args: Any) -> Any:
        if self.is_off or self.is_replaying:
            return None
        began = perf_counter()
        try:
            return method(self, *args)
        except Exception as error:  # the boundary to the user's training: nothing may pass
            if host.is_from_a_signal(error):
                raise  # it would have come there or anywhere else
            self.turn_off(error)
            return None
        finally:
            self.budget.spent_s += perf_counter() - began

    return guarded  # type: ignore[return-value]
