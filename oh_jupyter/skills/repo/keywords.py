"""Search by words, best match first.

The measure is Okapi BM25. It is a formula of two lines; the packages that offer it bring
numpy into every kernel, or are not maintained.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping

__all__ = ["WordIndex", "words"]

_K1, _B = 1.5, 0.75  # the usual values


def words(text: str) -> list[str]:
    """Words of identifiers in lower case; ``parseHTML`` and ``parse_html`` give the same."""
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+", text)
    return [word.lower() for word in found]


class WordIndex:
    """Which document has which word how often."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._sizes: dict[str, int] = {}
        self._counts: dict[str, dict[str, int]] = defaultdict(dict)
        for name, text in documents.items():
            found = words(text)
            self._sizes[name] = len(found)
            for word, count in Counter(found).items():
                self._counts[word][name] = count

    def rank(self, query: str, count: int) -> list[str]:
        """Names of the documents that fit a query best; those without any of its words are out."""
        total = len(self._sizes)
        average = sum(self._sizes.values()) / total if total else 0.0
        scores: dict[str, float] = defaultdict(float)
        for word in set(words(query)):
            having = self._counts.get(word, {})
            weight = math.log(1 + (total - len(having) + 0.5) / (len(having) + 0.5))
            for name, often in having.items():
                length = 1 - _B + _B * self._sizes[name] / average
                scores[name] += weight * often * (_K1 + 1) / (often + _K1 * length)
        return sorted(scores, key=lambda name: (-scores[name], name))[:count]
