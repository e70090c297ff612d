"""Readers of formats other than PDF, and what tells a file's format. `read_document` is the door."""
