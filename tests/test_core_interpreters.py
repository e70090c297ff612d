"""The core in sub-interpreters: refused with an ImportError, never a crash or a wait for ever."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

RUN_IN_SUBINTERPRETERS = """
import sys
try:  # private modules: 3.13 names configurations, those before take a flag
    from _interpreters import create, destroy, run_string
    kinds = [lambda: create("isolated"), lambda: create("legacy")]
except ImportError:
    from _xxsubinterpreters import create, destroy, run_string
    kinds = [lambda: create(isolated=True), lambda: create(isolated=False)]

def compute():
    from bookrag_fast import core
    return core.personalized_pagerank(core.KnowledgeGraph(2, [0], [1], [1.0]), [0]).tolist()

asked = '''
try:
    import bookrag_fast._core
    print("works", flush=True)
except ImportError as error:
    assert "interpreter" in str(error), error
    print("refused", flush=True)
'''
if "before" in sys.argv:
    compute()
for new in kinds * 2:
    interpreter = new()
    failed = run_string(interpreter, asked)
    assert failed is None, failed
    destroy(interpreter)
assert abs(sum(compute()) - 1) < 1e-6
print("main works", flush=True)
"""


@pytest.mark.skipif(
    not any(map(importlib.util.find_spec, ("_interpreters", "_xxsubinterpreters"))),
    reason="this Python has no module that makes sub-interpreters",
)
@pytest.mark.parametrize("order", ["before", "after"])
def test_sub_interpreters_are_refused_and_the_main_one_goes_on(order: str) -> None:
    """Whether the main interpreter has imported the core `before` or does so `after`."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN_IN_SUBINTERPRETERS, order],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["refused"] * 4 + ["main works"]
