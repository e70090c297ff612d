"""Reading pages that are pictures of text.

`legible` tells which pages need it, `pictures.pool` spreads them over `worker` processes, in which
`pictures.pixels` renders and `recogniser` reads, and `typeset` makes of it what a text layer would
have given: lines for the same layout analysis.
"""
