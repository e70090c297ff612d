"""Pages as pictures: rendered, drawn on, read in processes of their own."""
