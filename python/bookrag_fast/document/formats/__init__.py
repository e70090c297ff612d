"""Readers of formats other than PDF, and what tells a file's format. See `read_document`."""
