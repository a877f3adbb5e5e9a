#!/usr/bin/env python3
"""Writes sacrebleu.json: what sacreBLEU 2.6.0 says about small, tricky corpora.

    python3 -m venv venv && venv/bin/pip install sacrebleu==2.6.0
    venv/bin/python make_sacrebleu.py

tests/evaluate compares every number with ours. All sentences are written for this project.
"""
import json
import pathlib
import random

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.bleu import _get_tokenizer

TOKENIZERS = ["13a", "intl", "none"]

# name: (hypotheses, references[r][i])
CORPORA = {
    "plain": (
        ["The cat sat on the mat.", "It is raining today, is it not?", "He said nothing at all."],
        [["The cat is sitting on the mat.", "It rains today, does it not?", "He did not say anything at all."]],
    ),
    "perfect": (["A small house by the sea."], [["A small house by the sea."]]),
    "no match": (["alpha beta gamma delta"], [["one two three four"]]),
    "one word matches": (["alpha two gamma delta epsilon"], [["one two three four five"]]),
    "bigrams match": (["the house red is big and old"], [["the house is red and old it is big"]]),
    "empty hypothesis": (["", "a b c d e"], [["x y z", "a b c d f"]]),
    "only empty hypotheses": (["", "  "], [["x y z", "a b c d f"]]),
    "empty reference": (["a b c d", "x"], [["", "x"]]),
    "all empty": ([""], [[""]]),
    "one token": (["yes"], [["yes"]]),
    "two tokens": (["oh yes"], [["oh yes"]]),
    "three tokens": (["oh yes please"], [["oh yes please"]]),
    "short lines": (["a b", "c", "d e f"], [["a b", "c d", "d e"]]),
    "too long": (["a b c d e f g h i j k l m"], [["a b c d e"]]),
    "too short": (["a b c d"], [["a b c d e f g h i j"]]),
    "repetition is clipped": (["the the the the the the the"], [["the cat is on the mat"]]),
    "numbers": (
        ["It costs 1,000.5 euros, not 1.000,5 or 3. Or 5 .", "In 1999. And 12-13, 5-year plans; -7 or 7-."],
        [["It costs 1,000.50 euros, not 1.000,5 or 3. Or 5.", "In 1999, and 12-13, 5-year plans: -7 or 7 -."]],
    ),
    "hyphens": (
        ["a well-known state-of-the-art e-mail - yes", "semi-\u00adautomatic \u2013 or \u2014 not"],
        [["a well known state-of-the-art email \u2013 yes", "semi-automatic - or not"]],
    ),
    "entities": (
        ["&quot;Tom &amp; Jerry&quot; &lt;3 &apos;x&apos; &amp;lt; <skipped>end", "AT&amp;T & co &#39;"],
        [["\"Tom & Jerry\" <3 'x' &lt; end", "AT&T &amp; co '"]],
    ),
    "punctuation": (
        ["(Hello), [world]! {ok}? <a> a/b @c #d $5 %6 ^7 ~8 `9` |x| \\y", "Don't... stop.,.no ,,, . , !?", "'tis \"so\": it's; _ + = *"],
        [["(Hello) [world]! {ok}? <b> a / b @c #d $5 6% ^7 ~8 '9' |x| \\y", "Don't stop.... no , , . !", "It is \"so\": it's; + * = _"]],
    ),
    "spaces": (
        ["a\u00a0b c\u2009d\u3000e\tf  g ", "\u00a0lead and trail\u00a0", "zero\u200bwidth and\u2028line x\u0085y"],
        [["a b c d e f g", "lead and trail", "zero width and line x y"]],
    ),
    "CJK": (
        ["\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002", "\u3053\u308c\u306f\u3001\u300c\u732b\u300d\u3067\u3059\u3002 \uff11\uff12\uff0c\uff13"],
        [["\u4eca\u5929\u7684\u5929\u6c14\u5f88\u597d\uff01", "\u3053\u308c\u306f\u300c\u732b\u300d\u3067\u3059\u3002 \uff11\uff12\uff0c\uff14"]],
    ),
    "emoji and symbols": (
        ["I \u2665 NY \U0001f600\U0001f600 \u20ac5 \u00a35 5\u20ac 2\u00d73\u2260\u00bd x\u00b2", "\U0001f468\u200d\U0001f469\u200d\U0001f467 family \u00a9\u00ae\u2122 100\u00b0C"],
        [["I love NY \U0001f600 \u20ac 5 \u00a35 5 \u20ac 2 \u00d7 3 \u2260 \u00bd x\u00b2", "\U0001f468\u200d\U0001f469\u200d\U0001f467 families \u00a9 \u2122 100 \u00b0C"]],
    ),
    "quotes": (
        ["\u201eJa\u201c, sagte er, \u201anein\u2018. \u00abOui\u00bb \u2026 \u00a1Hola! \u00bfQu\u00e9?", "l\u2019homme qu'il l'a \u2019s"],
        [["\u201eJa\u201c sagte er \u201anein\u2018. \u00ab Oui \u00bb ... \u00a1Hola! \u00bfQue?", "l'homme qu\u2019il l'a 's"]],
    ),
    "case": (
        ["THE \u0130stanbul STRASSE \u00c4\u00d6\u00dc \u1e9e \u039f\u0394\u039f\u03a3 \u03a3 \u0391\u03a3. \u01c5 \u2126 I\u0307", "\u0415\u0416 IN the \uff21\uff22 \U00010400"],
        [["the i\u0307stanbul strasse \u00e4\u00f6\u00fc \u00df \u03bf\u03b4\u03bf\u03c2 \u03c3 \u03b1\u03c2. \u01c6 \u03c9 i\u0307", "\u0435\u0436 in THE \uff41\uff42 \U00010428"]],
    ),
    "combining": (["cafe\u0301 nai\u0308ve \u0928\u092e\u0938\u094d\u0924\u0947 \u0661\u0662\u060c\u0663"], [["caf\u00e9 na\u00efve \u0928\u092e\u0938\u094d\u0924\u0947 \u0661\u0662\u060c \u0663"]]),
    "two references": (
        ["the quick brown fox jumped over the dog", "he is here now", "one two three four"],
        [
            ["a quick brown fox jumps over the lazy dog", "he is here", "one two three four five"],
            ["the fast brown fox jumped over a dog", "now he is here already", "one two three"],
        ],
    ),
    "three references": (
        ["It is a guide to action that ensures the military always obeys.", "", "x"],
        [
            ["It is a guide to action which ensures that the military always obeys the party.", "a b", "x y"],
            ["It is the guiding principle which guarantees the military forces always being under command.", "", "y"],
            ["It is the practical guide for the army always to heed directions.", "a", ""],
        ],
    ),
    "tokenised": (
        ["a man in a blue shirt is standing on a ladder .", "two dogs run , one jumps ."],
        [["a man in a blue shirt stands on a ladder .", "two dogs are running and one jumps ."]],
    ),
}

# Random lines over an alphabet of everything a rule looks at.
ALPHABET = list("ab  ..,,-'\"()&<>/019:;%_") + [
    "the", "THE", "dog", "\u00e4", "\u0130", "\u03a3", "\u00a0", "\u3000", "\u2019", "\u2026", "\u20ac", "\u00d7", "\u00bd", "\u0662",
    "\u060c", "\u4eca", "\u3002", "\U0001f600", "\u0301", "\u200b", "&amp;", "&quot;", "&lt;", "<skipped>", " 1,5 ", "x-",
]


def random_corpus(seed, references):
    rng = random.Random(seed)
    line = lambda: "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(0, 30)))
    hypotheses, streams = [], [[] for _ in range(references)]
    for _ in range(rng.randrange(1, 6)):
        base = line()
        hypotheses.append(base)
        for stream in streams:
            cut = rng.randrange(0, len(base) + 1)
            stream.append(base[:cut] + line() if rng.random() < 0.8 else line())
    return hypotheses, streams


def bleu_case(hypotheses, references, **options):
    metric = BLEU(force=True, **options)
    score = metric.corpus_score(hypotheses, references)
    return {
        "tokenize": options["tokenize"],
        "lowercase": options.get("lowercase", False),
        "smooth": options.get("smooth_method", "exp"),
        "effective_order": options.get("effective_order", False),
        "score": score.score,
        "correct": list(score.counts),
        "total": list(score.totals),
        "precisions": score.precisions,
        "bp": score.bp,
        "hyp_len": score.sys_len,
        "ref_len": score.ref_len,
        "text": str(score),
        "signature": str(metric.get_signature()),
    }


def chrf_case(hypotheses, references, **options):
    metric = CHRF(**options)
    score = metric.corpus_score(hypotheses, references)
    return {
        "char_order": options.get("char_order", 6),
        "word_order": options.get("word_order", 0),
        "beta": options.get("beta", 2),
        "lowercase": options.get("lowercase", False),
        "whitespace": options.get("whitespace", False),
        "score": score.score,
        "text": str(score),
        "signature": str(metric.get_signature()),
    }


def corpus_case(name, hypotheses, references):
    bleus = [
        bleu_case(hypotheses, references, tokenize=tokenizer, lowercase=lowercase)
        for tokenizer in TOKENIZERS
        for lowercase in (False, True)
    ]
    bleus.append(bleu_case(hypotheses, references, tokenize="13a", smooth_method="none"))
    bleus.append(bleu_case(hypotheses, references, tokenize="13a", effective_order=True))
    chrfs = [
        chrf_case(hypotheses, references),
        chrf_case(hypotheses, references, word_order=2),
        chrf_case(hypotheses, references, lowercase=True),
        chrf_case(hypotheses, references, whitespace=True, char_order=4, word_order=1, beta=1),
    ]
    return {"name": name, "hypotheses": hypotheses, "references": references, "bleu": bleus, "chrf": chrfs}


def main():
    corpora = [corpus_case(name, *corpus) for name, corpus in CORPORA.items()]
    corpora += [corpus_case(f"random {seed}", *random_corpus(seed, 1 + seed % 3)) for seed in range(40)]
    lines = sorted({line for corpus in corpora for line in corpus["hypotheses"] + corpus["references"][0]})
    tokenizers = {name: _get_tokenizer(name)() for name in TOKENIZERS}
    tokens = [
        {"line": line, **{name: tokenizer(line.rstrip()).split() for name, tokenizer in tokenizers.items()}}
        for line in lines
    ]
    out = {"version": sacrebleu.__version__, "tokens": tokens, "corpora": corpora}
    path = pathlib.Path(__file__).with_name("sacrebleu.json")
    path.write_text(json.dumps(out, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
