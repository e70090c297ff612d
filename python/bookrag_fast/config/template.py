"""The file that `bookrag config init` writes: every setting, explained, at its default.

All of it is commented out, so that a later version's defaults come through where nothing was
chosen.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, get_args

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
# Settings of bookrag_fast. What is commented out is the default: remove the "# " of a key to set it
# (and that of its [section]). Flags and environment variables go before: BOOKRAG_EMBEDDER,
# BOOKRAG_RETRIEVAL__DAMPING, BOOKRAG_MODELS__SMALL__BASE_URL …
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

# In this process, by onnxruntime: a folder, a package that ships a model, or a hub's name
# [models.minilm]
# kind = "onnx-embedder"
# source = "models/all-MiniLM-L6-v2"
"""


def settings_file() -> str:
    """The text of a `bookrag.toml` that changes nothing."""
    plain = [n for n, i in Settings.model_fields.items() if _section(n, i) is None]
    parts = [_HEAD, *(_setting(n, Settings.model_fields[n]) for n in plain if n != "models")]
    for name, info in Settings.model_fields.items():
        section = _section(name, info)
        if section is not None:
            parts += [f"\n# [{name}]\n", *_settings(section)]
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
        parts.append(f"\n# All keys of {what}{' besides those' if shared else ''}:\n#\n")
        parts += _settings(kind, but=shared, mark="#   ")
    return "".join(parts)


def _section(name: str, info: FieldInfo) -> type[BaseModel] | None:
    return None if name == "models" else section_in(info.annotation)


def _settings(section: type[BaseModel], *, but: Any = (), mark: str = "# ") -> Iterator[str]:
    for name, info in section.model_fields.items():
        if name not in but:
            yield _setting(name, info, mark)


def _setting(name: str, info: FieldInfo, mark: str = "# ") -> str:
    """``# name = default  # what it is for``."""
    if name == "kind":
        value = as_toml(get_args(info.annotation)[0])
    elif info.is_required():
        value = "…"
    elif isinstance(info.default, BaseModel):
        value = as_toml(info.default.model_dump())
    else:
        assert not isinstance(info.default, SecretStr)
        value = as_toml(info.default)
    line = f"{mark}{name} = {value}"
    if not info.description:
        return line + "\n"
    if len(line) + len(info.description) + 4 <= _WIDTH:
        return f"{line}  # {info.description}\n"
    above = textwrap.fill(info.description, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    return f"{above}\n{line}\n"
