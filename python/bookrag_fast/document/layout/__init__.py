"""A layout model's second opinion: regions of pages, looked at in processes of their own.

The rules decide. What the model saw only helps where they have little to go by: a figure's caption
without anything drawn beside it, as on a scan, and the confidence of a heading.
"""
