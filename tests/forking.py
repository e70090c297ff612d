"""Work in a forked child."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


def in_child(work: Callable[[], object], seconds: float = 10.0) -> Callable[[], object]:
    """Starts work in a forked child; what it returned can be called for."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            threading.Timer(seconds, os._exit, (1,)).start()  # it hangs
            os.write(writing, json.dumps(work()).encode())
        except BaseException as error:
            os.write(writing, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writing)

    def result() -> object:
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read()
        os.waitpid(process, 0)
        assert said, "the child hangs"
        return json.loads(said)

    return result


@contextmanager
def held_by_a_thread(what: AbstractContextManager[object]) -> Iterator[None]:
    """Within it another thread is in the context ``what``."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with what:
            held.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        yield
    finally:
        over.set()
        holder.join()
