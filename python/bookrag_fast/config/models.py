"""Settings of models: which there are, what they are used for, what they may cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from bookrag_fast.config.areas import Section

__all__ = [
    "MODEL_KINDS",
    "BudgetSettings",
    "CacheSettings",
    "ChatModelSettings",
    "EmbeddingsModelSettings",
    "EndpointSettings",
    "ModelSettings",
    "OnnxEmbedderSettings",
    "OnnxRerankerSettings",
    "PriceSettings",
    "RerankModelSettings",
    "RoleSettings",
    "RolesSettings",
]


class PriceSettings(Section):
    """What a million tokens cost, in US dollars. Nothing is known of prices but what is set."""

    input: float = Field(0.0, ge=0, description="USD for a million prompt tokens")
    output: float = Field(0.0, ge=0, description="USD for a million completion tokens")


class EndpointSettings(Section):
    """A server's endpoint, and how hard it may be pressed."""

    base_url: str = Field(examples=["http://localhost:8000/v1"], description='up to and with "/v1"')
    model: str = Field(examples=["Qwen/Qwen3-8B"], description="what the server calls the model")
    api_key: SecretStr | None = Field(None, examples=["sk-…"], description="better: api_key_env")
    api_key_env: str = Field("", description="environment variable that holds the key")
    headers: dict[str, SecretStr] = Field({}, description="sent with every call")
    ca_file: str = Field("", description="certificates to trust instead of the system's")
    timeout_s: float = Field(60.0, gt=0, le=3600, description="of one call, retries included")
    retries: int = Field(4, ge=0, le=20, description="of a call that failed in passing")
    concurrency: int = Field(8, ge=1, le=1024, description="calls at once, over all roles")
    requests_per_minute: int | None = Field(
        None, ge=1, examples=[500], description="None: as many as it takes"
    )
    tokens_per_minute: int | None = Field(
        None, ge=1, examples=[200_000], description="prompt and completion"
    )
    price: PriceSettings = PriceSettings()

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        """Nothing of it is secret, so that it may stand in messages."""
        url = url.strip()
        parts = urlsplit(url)
        _ = parts.port  # ValueError for one out of range
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("should be the address of a server, like http://localhost:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("should hold no user, password or query: use api_key_env or headers")
        return url


class ChatModelSettings(EndpointSettings):
    """A language model behind an OpenAI-compatible chat endpoint."""

    kind: Literal["chat"] = Field("chat", description="what the model is")
    context_tokens: int = Field(8192, ge=512, description="prompt and completion together")
    max_tokens: int = Field(2048, ge=16, description="most of one completion")
    temperature: float = Field(0.0, ge=0, le=2, description="0: always the likeliest word")
    structured: Literal["auto", "schema", "json", "prompt"] = Field(
        "auto", description="how JSON is asked for; auto: the best that the server takes"
    )
    vision: bool = Field(False, description="whether it sees images")
    max_images: int = Field(4, ge=1, le=64, description="of one call, if it sees")
    api_version: str = Field("", description="of Azure OpenAI; empty elsewhere")
    extra_body: dict[str, Any] = Field({}, description="sent along, e.g. to stop thinking")


class EmbeddingsModelSettings(EndpointSettings):
    """An embedding model behind an OpenAI-compatible endpoint."""

    kind: Literal["embeddings"] = Field(description="what the model is")
    dimension: int | None = Field(
        None, ge=1, le=16384, examples=[256], description="cut to this (Matryoshka)"
    )
    batch_size: int = Field(64, ge=1, le=2048, description="texts of one call")
    max_tokens: int = Field(512, ge=8, description="of a text; longer ones are cut")
    query_prefix: str = Field("", description="put before every question")
    passage_prefix: str = Field("", description="put before every other text")


class RerankModelSettings(EndpointSettings):
    """A reranker behind a rerank endpoint of the shape of Jina and Cohere (vLLM, TEI …)."""

    kind: Literal["rerank"] = Field(description="what the model is")
    batch_size: int = Field(64, ge=1, le=1024, description="texts of one call")
    max_tokens: int = Field(512, ge=8, description="of a text; longer ones are cut")


class _OnnxSettings(Section):
    source: str = Field(
        examples=["models/all-MiniLM-L6-v2"],
        description="a folder, a package that ships the model, or a hub's name",
    )
    download: bool = Field(
        False, description="fetch a hub's model if it is not here yet; needs the extra `hub`"
    )
    file: str = Field("", description="the model's file in there; empty: the usual places")
    tokenizer: str = Field("", description="where tokenizer.json is, if not beside the model")
    providers: list[str] | None = Field(
        None,
        examples=[["CPUExecutionProvider"]],
        description="None: CUDA where it works, else CPU",
    )
    tensorrt: bool = Field(False, description="try TensorRT before CUDA")
    threads: int = Field(0, ge=0, le=256, description="on the CPU; 0: one a physical core")
    max_tokens: int = Field(256, ge=3, le=32768, description="of a text; longer ones are cut")
    batch_size: int = Field(32, ge=1, le=4096, description="most texts of one run")


class OnnxEmbedderSettings(_OnnxSettings):
    """An embedding model run in this process."""

    kind: Literal["onnx-embedder"] = Field(description="what the model is")
    pooling: Literal["mean", "cls", "last"] = Field(
        "mean", description="how the vectors of tokens become one"
    )
    dimension: int | None = Field(
        None, ge=1, le=16384, examples=[256], description="cut to this (Matryoshka)"
    )
    query_prefix: str = Field("", description="put before every question")
    passage_prefix: str = Field("", description="put before every other text")


class OnnxRerankerSettings(_OnnxSettings):
    """A reranker run in this process: a cross-encoder, or token vectors for late interaction."""

    kind: Literal["onnx-reranker"] = Field(description="what the model is")
    method: Literal["cross-encoder", "late-interaction"] = Field(
        "cross-encoder", description="late-interaction: MaxSim over token vectors"
    )
    query_prefix: str = Field("", description="put before every question")
    passage_prefix: str = Field("", description="put before every other text")


def _usually_chat(value: object) -> object:
    """A model that does not say its kind is a chat model."""
    return {"kind": "chat", **value} if isinstance(value, dict) else value


ModelSettings = Annotated[
    Annotated[
        ChatModelSettings
        | EmbeddingsModelSettings
        | RerankModelSettings
        | OnnxEmbedderSettings
        | OnnxRerankerSettings,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_usually_chat),
]

MODEL_KINDS: dict[str, type[Section]] = {
    "chat": ChatModelSettings,
    "embeddings": EmbeddingsModelSettings,
    "rerank": RerankModelSettings,
    "onnx-embedder": OnnxEmbedderSettings,
    "onnx-reranker": OnnxRerankerSettings,
}


class RoleSettings(Section):
    """The model of a role, and how many calls of that role may run at once."""

    model: str = Field(description="the name of one of `models`")
    concurrency: int | None = Field(
        None, ge=1, le=1024, description="None: as the model's; the smaller of the two holds"
    )

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: object) -> object:
        """``plan = "small"`` says the same as ``plan = {model = "small"}``."""
        return {"model": value} if isinstance(value, str) else value


class RolesSettings(Section):
    """What language models are used for; a role without one is played by rules. Of a role's and
    its model's `concurrency` the smaller holds."""

    sections: RoleSettings | None = Field(
        None, examples=["small"], description="which candidates are headings"
    )
    extract: RoleSettings | None = Field(
        None, examples=["small"], description="entities of a question"
    )
    resolve: RoleSettings | None = Field(
        None, examples=["small"], description="which entities are the same"
    )
    plan: RoleSettings | None = Field(
        None, examples=["small"], description="classification, decomposition, sections"
    )
    answer: RoleSettings | None = Field(
        None, examples=[{"model": "small", "concurrency": 4}], description="Map and Reduce"
    )
    vision: RoleSettings | None = Field(
        None, examples=["gemma"], description="Map over figures; must see"
    )
    summarise: RoleSettings | None = Field(
        None, examples=["small"], description="summaries of sections, if wanted"
    )


class CacheSettings(Section):
    """Replies of models, kept for the next time."""

    enabled: bool = Field(True, description="whether they are")
    max_mb: int = Field(1024, ge=1, description="the least recently used go first")


class BudgetSettings(Section):
    """What models may take; at the limit work stops, and goes on later from there."""

    usd_per_day: float | None = Field(
        None, ge=0, examples=[2.0], description="US dollars, by the set prices"
    )
    usd_per_book: float | None = Field(None, ge=0, examples=[0.5], description="for one book")
    tokens_per_day: int | None = Field(
        None, ge=0, examples=[5_000_000], description="prompt and completion"
    )
    tokens_per_book: int | None = Field(
        None, ge=0, examples=[1_000_000], description="for one book"
    )
