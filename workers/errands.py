"""Work in threads of its own, for what may block for ever: a share whose server is gone holds a read in the system,
where no signal ends it, and some servers take a connection and never answer.

Rules:
- Whoever asks waits for as long as the work makes steps. After `silence` seconds without one it is `Silent`.
- The work itself is not ended, as nothing could. Who asks for it again, by its name, gets what came of it; that is kept
  for KEPT seconds.
- While some work is silent, nobody waits longer than a moment for any other, which goes on beside: else each of those
  who stand in line would wait as long for the same store.
- Of MOST that are silent none more is begun.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

Step = Callable[[], None]
"""To be called whenever something came of the work."""

KEPT: Final = 30.0
MOST: Final = 16
_MOMENT: Final = 0.1


class Silent(Exception):
    """Nothing came of it for a while; the text says how long that is."""


class _Errand:
    def __init__(self, name: str, work: Callable[[Step], Any]) -> None:
        self.ended, self._taken = threading.Event(), threading.Event()
        self.last = time.monotonic()
        self.silent = False
        self._name, self._work = name, work
        self._value: Any = None
        self._error: BaseException | None = None

    def step(self) -> None:
        self.last = time.monotonic()
        self.silent = False

    def run(self) -> None:
        try:
            self._value = self._work(self.step)
        except BaseException as error:  # whoever asked gets it
            self._error = error
        self.step()
        self.ended.set()
        self._taken.wait(KEPT)
        self._forget()

    def take(self) -> Any:
        self._taken.set()
        self._forget()
        if self._error is not None:
            raise self._error
        return self._value

    def _forget(self) -> None:
        with _lock:
            if _errands.get(self._name) is self:
                del _errands[self._name]


_errands: dict[str, _Errand] = {}
_lock = threading.Lock()


def run(name: str, work: Callable[[Step], T], silence: float) -> T:
    """What `work` gives or raises; it is begun unless work of this name goes on already. `Silent` where nothing came of
    it for `silence` seconds."""
    with _lock:
        silent = sum(errand.silent for errand in _errands.values())
        errand = _errands.get(name)
        if errand is None:
            if silent >= MOST:
                raise Silent(f"{silent} others wait for it in vain")
            errand = _errands[name] = _begun(name, work)
    patience = min(_MOMENT, silence) if silent else silence
    while not errand.ended.wait(max(0.0, errand.last + patience - time.monotonic())):
        if (waited := time.monotonic() - errand.last) >= patience:
            errand.silent = not errand.ended.is_set()
            raise Silent(f"nothing came of it for {waited:.1f} s")
    value: T = errand.take()
    return value


def _begun(name: str, work: Callable[[Step], Any]) -> _Errand:
    errand = _Errand(name, work)
    try:
        threading.Thread(target=errand.run, name="errand", daemon=True).start()
    except RuntimeError:  # its stack is memory, too
        raise MemoryError from None
    return errand
