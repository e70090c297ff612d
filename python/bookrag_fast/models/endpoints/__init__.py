"""Models behind HTTP endpoints, through the `openai` client.

Importing this package imports that client, which takes a moment: import it where an endpoint is
configured, not before.
"""

from __future__ import annotations

from bookrag_fast.models.endpoints.chat import ChatEndpoint
from bookrag_fast.models.endpoints.embeddings import EmbeddingsEndpoint
from bookrag_fast.models.endpoints.rerank import RerankEndpoint

__all__ = ["ChatEndpoint", "EmbeddingsEndpoint", "RerankEndpoint"]
