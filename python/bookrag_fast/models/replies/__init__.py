"""From what a model says to what was asked for: replies cleaned, repaired, checked."""

from __future__ import annotations

from bookrag_fast.models.replies.role_model import CheckedModel

__all__ = ["CheckedModel"]
