"""`bookrag serve`"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from bookrag_fast.cli.options import (
    DebugOption,
    EmbedderOption,
    JsonOption,
    LibraryOption,
    NoCacheOption,
    opened,
)
from bookrag_fast.errors import InvalidArgumentError

if TYPE_CHECKING:
    from bookrag_fast.server import Address

__all__ = ["serve"]

_LINGER_S = 5.0


def serve(
    host: Annotated[
        str, typer.Option("--host", help="There is no TLS or login yet: keep to loopback.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="0 lets the system choose.")
    ] = 50051,
    allow_path: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(
            "--allow-path",
            metavar="DIR",
            help="Folder whose files clients may have indexed by path; repeatable. None by "
            "default: clients send bytes.",
        ),
    ] = None,
    max_upload_mb: Annotated[
        int, typer.Option("--max-upload-mb", min=1, help="Largest book that a client may send.")
    ] = 1024,
    max_calls: Annotated[
        int, typer.Option("--max-calls", min=1, help="Calls in work at once; more are refused.")
    ] = 64,
    grace: Annotated[
        float,
        typer.Option("--grace", min=0.0, metavar="SECONDS", help="To finish calls after a stop."),
    ] = 10.0,
    embedder: EmbedderOption = None,
    no_cache: NoCacheOption = False,
    library: LibraryOption = Path("shelf"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Serve the shelf over gRPC (bookrag.v1) until SIGTERM or SIGINT.

    The bound address is printed when the server is ready; logs go to standard error.
    """
    # gRPC's C core writes lines of its own to standard error beside the error that we report.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from bookrag_fast.server import ServerConfig, ServicerLimits
    from bookrag_fast.server import serve as run

    folders = tuple(allow_path or ())
    for folder in folders:
        if not folder.is_dir():
            raise InvalidArgumentError(f"--allow-path {folder} is not a folder")
    _log_to_stderr(logging.DEBUG if debug else logging.INFO)
    config = ServerConfig(
        host=host,
        port=port,
        max_calls=max_calls,
        grace_s=grace,
        limits=ServicerLimits(allow_paths=folders, max_upload_bytes=max_upload_mb << 20),
    )

    def ready(address: Address) -> None:
        if as_json:
            document = {
                "listening": str(address),
                "host": address.host,
                "port": address.port,
                "pid": os.getpid(),
            }
            typer.echo(json.dumps(document))
        else:
            typer.echo(f"bookrag is listening on {address}")
        sys.stdout.flush()  # whoever waits for this line reads a pipe

    async def work() -> None:
        await run(shelf, config, ready=ready)
        # Every call has ended. A worker thread still inside native code must not keep the
        # process from exiting: the shelf is safe against a kill at any time.
        last = threading.Timer(_LINGER_S, os._exit, [0])
        last.daemon = True
        last.start()

    with opened(library, embedder, no_cache=no_cache) as shelf:
        asyncio.run(work())


def _log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    # On the handler too: some libraries set their own loggers to DEBUG.
    handler.setLevel(level)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level)
    # A line for each call of a model is more than anybody reads; failures are told by ours.
    for client in ("openai", "httpx2"):
        logging.getLogger(client).setLevel(max(level, logging.WARNING))
