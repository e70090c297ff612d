"""PDF files: what PDFium says of a page, and the pages put together into a document."""
