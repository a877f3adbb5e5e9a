"""Word links of a parallel text, to guide attention with: IBM model 1 with a diagonal prior, both directions.

    word_links.py SOURCE TARGET > LINKS

Writes "0-0 1-2 ..." a line, source word - target word: the links that both directions agree on. A target word j of m
comes from source word i of n with probability t(f_j | e_i) times a prior that falls with |i / n - j / m|, or from no word
(Dyer, Chahuneau and Smith 2013, eq. 1 to 3, with their tension 4 and share 0.08 of words from nowhere); t is learned by
five rounds of variational EM with a symmetric Dirichlet prior of 0.01. Only the two texts are looked at. Needs numpy
(Debian: python3-numpy).
"""
import pathlib
import sys

import numpy as np

TENSION, FROM_NOWHERE, CONCENTRATION, ROUNDS = 4.0, 0.08, 0.01, 5


def read(path):
    """Lines of word numbers, and how many different words there are."""
    numbers = {}
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    return [np.array([numbers.setdefault(word, len(numbers)) for word in line.split()], dtype=np.int64)
            for line in lines], len(numbers)


def digamma(x):
    """Derivative of log gamma: recurrence up to 6, then the asymptotic series."""
    x, small = x.copy(), np.zeros_like(x)
    for _ in range(6):
        below = x < 6
        small[below] -= 1 / x[below]
        x[below] += 1
    square = 1 / (x * x)
    return small + np.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252))


def candidates(sources, targets, nowhere):
    """One entry for each target word and each word, or none (`nowhere`), that it may come from."""
    columns = {name: [] for name in ("source", "target", "row", "position", "prior")}
    row = 0
    for source, target in zip(sources, targets):
        n, m = len(source), len(target)
        if n and m:
            distance = np.abs((np.arange(m)[:, None] + 1) / m - (np.arange(n)[None, :] + 1) / n)
            near = np.exp(-TENSION * distance)
            near *= (1 - FROM_NOWHERE) / near.sum(axis=1, keepdims=True)
            columns["prior"].append(np.concatenate([np.full((m, 1), FROM_NOWHERE), near], axis=1).ravel())
            columns["source"].append(np.tile(np.append(nowhere, source), m))
            columns["target"].append(np.repeat(target, n + 1))
            columns["row"].append(np.repeat(np.arange(row, row + m), n + 1))
            columns["position"].append(np.tile(np.arange(-1, n), m))
        row += m
    return {name: np.concatenate(parts) for name, parts in columns.items()}, row


def best_sources(sources, targets, source_words):
    """For each sentence the source word of every target word, -1 where it comes from none."""
    cells, rows = candidates(sources, targets, nowhere=source_words)
    pairs, pair_of = np.unique(cells["source"] * (cells["target"].max() + 1) + cells["target"], return_inverse=True)
    source_of = pairs // (cells["target"].max() + 1)
    seen = np.bincount(source_of, minlength=source_words + 1)  # different target words beside each source word
    translation = np.ones(len(pairs))
    for _ in range(ROUNDS):
        share = translation[pair_of] * cells["prior"]
        share /= np.bincount(cells["row"], share, minlength=rows)[cells["row"]]
        count = np.bincount(pair_of, share, minlength=len(pairs))
        total = np.bincount(source_of, count, minlength=source_words + 1)
        translation = np.exp(digamma(count + CONCENTRATION) - digamma(total + CONCENTRATION * seen)[source_of])
    order = np.lexsort((translation[pair_of] * cells["prior"], cells["row"]))
    row = cells["row"][order]
    last = np.append(row[1:] != row[:-1], True)
    best = np.full(rows, -1)
    best[row[last]] = cells["position"][order][last]
    return np.split(best, np.cumsum([len(target) for target in targets])[:-1])


def main(source_path, target_path):
    (sources, source_words), (targets, target_words) = read(source_path), read(target_path)
    if len(sources) != len(targets):
        sys.exit(f"word_links.py: {source_path} has {len(sources)} lines, {target_path} {len(targets)}: they must be "
                 "line for line translations")
    forward = best_sources(sources, targets, source_words)
    backward = best_sources(targets, sources, target_words)
    for of_target, of_source in zip(forward, backward):
        print(" ".join(f"{i}-{j}" for j, i in enumerate(of_target) if i >= 0 and of_source[i] == j))


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
