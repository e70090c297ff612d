"""From lines of text to blocks in reading order: columns, tables, captions, running matter."""
