"""How well section trees agree with true ones, on documents with known headings."""

from bookrag_fast.evaluation.report import markdown, to_json
from bookrag_fast.evaluation.runner import Result, evaluate_trees
from bookrag_fast.evaluation.scores import Heading, TreeScore, score_tree
from bookrag_fast.evaluation.truth import Truth, find_truths, outline_truth

__all__ = [
    "Heading",
    "Result",
    "TreeScore",
    "Truth",
    "evaluate_trees",
    "find_truths",
    "markdown",
    "outline_truth",
    "score_tree",
    "to_json",
]
