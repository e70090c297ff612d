"""onnxruntime sessions: which provider runs a model, chosen quietly and stated plainly.

onnxruntime writes native error lines to stderr and prints to stdout when CUDA is compiled in but
its libraries are not on the machine, which is every CPU machine with onnxruntime-gpu. So CUDA is
tried only where an NVIDIA driver loads, and with those messages held back; what came of it is
told by `Placement.reason` and the log instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import io
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookrag_fast.errors import ConfigError, ModelError, ModelNotFoundError

__all__ = ["Placement", "available_providers", "open_session"]

_log = logging.getLogger(__name__)

_CPU = "CPUExecutionProvider"
_CUDA = "CUDAExecutionProvider"
_TENSORRT = "TensorrtExecutionProvider"
_INSTALL_TENSORRT = "pip install tensorrt-cu12"
_INSTALL_CUDA = "pip install 'onnxruntime-gpu[cuda,cudnn]'"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a session runs: ``provider`` ("cuda", "cpu", …) and why there."""

    provider: str
    reason: str


def available_providers() -> tuple[str, ...]:
    """Providers that the installed onnxruntime was compiled with, best first.

    Raises:
        ModelError: no working onnxruntime is installed.
    """
    return tuple(_runtime().get_available_providers())


def open_session(
    model: Path,
    *,
    providers: Sequence[str] | None = None,
    tensorrt: bool = False,
    threads: int = 0,
) -> tuple[Any, Placement]:
    """An ``onnxruntime.InferenceSession`` and its placement. Safe from any thread.

    Args:
        model: the ``.onnx`` file.
        providers: onnxruntime provider names in order of preference; None means CUDA where it
            works, else the CPU.
        tensorrt: try TensorRT before CUDA, if ``providers`` is None. It builds an engine for the
            shapes it meets, which takes minutes for a large model.
        threads: intra-op threads; 0 lets onnxruntime take one a physical core.

    Raises:
        ConfigError: a provider that this onnxruntime was not compiled with.
        ModelNotFoundError: no such file.
        ModelError: the file is not a model that onnxruntime can run.
    """
    if not model.is_file():
        raise ModelNotFoundError(f"the model file {model} is missing")
    runtime = _runtime()
    compiled = available_providers()
    wanted, reason = _wanted(providers, compiled, tensorrt)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    # Spinning workers would take whole cores from the other stages of an index build.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    quiet = wanted != [_CPU]
    try:
        with _held_back(runtime) if quiet else contextlib.nullcontext():
            session = runtime.InferenceSession(str(model), options, providers=wanted)
    except Exception as error:  # onnxruntime's own classes derive from Exception alone
        raise ModelError(
            f"{model} cannot be loaded by onnxruntime {runtime.__version__}: {error}",
            hint="export or download the model again; the file may be truncated",
        ) from error
    session.disable_fallback()  # a failing run raises instead of printing and starting over
    first = session.get_providers()[0]
    if first != wanted[0]:
        remedy = _INSTALL_TENSORRT if wanted[0] == _TENSORRT else _INSTALL_CUDA
        reason = f"{wanted[0]} did not start: its libraries do not load ({remedy})"
    placement = Placement(first.removesuffix("ExecutionProvider").lower(), reason)
    level = logging.WARNING if providers is not None and first != providers[0] else logging.INFO
    _log.log(level, "%s runs on %s: %s", model, placement.provider, placement.reason)
    return session, placement


def _wanted(
    providers: Sequence[str] | None, compiled: Sequence[str], tensorrt: bool
) -> tuple[list[str], str]:
    if providers is not None:
        unknown = [name for name in providers if name not in compiled]
        if unknown or not providers:
            raise ConfigError(
                f"onnxruntime has no provider {', '.join(unknown) or '(none was given)'}",
                hint=f"choose among {', '.join(compiled)}",
            )
        return [*providers, *([] if _CPU in providers else [_CPU])], "as configured"
    cuda = _cuda_obstacle(compiled)
    if not tensorrt:
        return ([_CPU], cuda) if cuda else ([_CUDA, _CPU], "an NVIDIA driver is present")
    obstacle = cuda or _tensorrt_obstacle(compiled)
    if not obstacle:
        return [_TENSORRT, _CUDA, _CPU], "TensorRT was asked for, and its libraries load"
    reason = f"TensorRT was asked for, but {obstacle}"
    return ([_CPU] if cuda else [_CUDA, _CPU]), reason


def _cuda_obstacle(compiled: Sequence[str]) -> str:
    if _CUDA not in compiled:
        return "this onnxruntime has no CUDA provider"
    return "" if _driver_loads() else "no NVIDIA driver on this machine"


def _tensorrt_obstacle(compiled: Sequence[str]) -> str:
    if _TENSORRT not in compiled:
        return "this onnxruntime has no TensorRT provider"
    return "" if _tensorrt_loads() else f"its libraries do not load ({_INSTALL_TENSORRT})"


def _tensorrt_loads() -> bool:
    """Loads TensorRT's library, so that onnxruntime finds it too, also out of PyPI's package."""
    name = "nvinfer_10.dll" if sys.platform == "win32" else "libnvinfer.so.10"
    package = importlib.util.find_spec("tensorrt_libs")
    folders = list(package.submodule_search_locations or []) if package else []
    for path in [name, *(str(Path(folder) / name) for folder in folders)]:
        with contextlib.suppress(OSError):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            return True
    return False


def _driver_loads() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _held_back(runtime: Any) -> Iterator[None]:
    """Silences onnxruntime's default logger and its prints while a provider is tried."""
    runtime.set_default_logger_severity(4)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            if hasattr(runtime, "preload_dlls"):
                # Finds the CUDA libraries that PyPI's nvidia-* packages put in site-packages.
                with contextlib.suppress(OSError, RuntimeError):
                    runtime.preload_dlls()
            yield
    finally:
        runtime.set_default_logger_severity(2)


def _runtime() -> Any:
    try:
        runtime = importlib.import_module("onnxruntime")
        # Two shadowing installations leave a package that imports but has no content.
        runtime.InferenceSession  # noqa: B018
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"onnxruntime does not work: {error}",
            hint="pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu",
        ) from error
    return runtime
