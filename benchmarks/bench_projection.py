"""Projection of entity scores onto tree nodes against scipy's sparse product and NumPy's sums."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from common import Report, arguments, check, interleaved

from bookrag_fast import core


def main() -> None:
    options = arguments(__doc__)
    report = Report("projection")
    sizes = [(2_000, 5_000, 20_000), (50_000, 100_000, 500_000)]
    for entities, nodes, links in sizes[:1] if options.quick else sizes:
        rng = np.random.default_rng(1)
        pairs = rng.integers(0, (nodes, entities), (links, 2), dtype=np.int32)
        node_of, entity_of = np.unique(pairs, axis=0).T.copy()
        link = core.GTLink(entities, nodes, entity_of, node_of)
        ones = np.ones(len(node_of), np.float32)
        matrix = sp.csr_matrix((ones, (node_of, entity_of)), (nodes, entities))
        scores = rng.random(entities, np.float32)

        def by_add(
            scores: np.ndarray = scores,
            nodes: int = nodes,
            node_of: np.ndarray = node_of,
            entity_of: np.ndarray = entity_of,
        ) -> np.ndarray:
            out = np.zeros(nodes, np.float32)
            np.add.at(out, node_of, scores[entity_of])
            return out

        name = f"projection, {entities} entities, {nodes} nodes, {links} links"
        check(np.allclose(link.project(scores), by_add(), rtol=1e-5), name)
        check(np.allclose(link.project(scores), matrix @ scores, rtol=1e-5), name)
        took = interleaved(
            {
                "core": lambda link=link, scores=scores: link.project(scores),
                "scipy": lambda matrix=matrix, scores=scores: matrix @ scores,
                "np.add.at": by_add,
            },
            seconds=options.seconds,
        )
        for other in ("scipy", "np.add.at"):
            report.row(name, ours=took["core"], against=other, theirs=took[other])
    report.finish(options.out)


if __name__ == "__main__":
    main()
