"""English-French text to train an aligner on, and the hand-aligned Hansards, in one tokenisation.

    hansards_text.py SHARED_DATA OUTPUT

Reads Multi30k (raw), the PO files of localisation/ and alignment/hansards-enfr.* of the folder SHARED_DATA, and
writes train.en, train.fr, valid.en, valid.fr, hansards.en and hansards.fr into the folder OUTPUT. PO entries lose
their markup and are parted into sentences where both sides have as many. All is lower-cased, and French is written as
the Hansards have it: elisions in full ("l'" as "le"), "du" as "de le". Needs polib (Debian: python3-polib).
"""
import gzip
import pathlib
import re
import sys

import polib

ELIDED = {"l": "le", "d": "de", "j": "je", "n": "ne", "s": "se", "c": "ce", "m": "me", "t": "te", "qu": "que",
          "jusqu": "jusque", "lorsqu": "lorsque", "puisqu": "puisque", "quoiqu": "quoique"}
CONTRACTED = {"du": "de le", "des": "de les", "au": "à le", "aux": "à les"}
APOSTROPHES = ("'", "’")
PIECE = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|_+|[^\w\s]")


def plain(text):
    """PO text without reStructuredText markup."""
    text = re.sub(r":[\w:+.-]+:`(?:~|!)?([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", text)  # roles
    text = re.sub(r"`([^`<]*?)\s*<[^`]*>`_*", r"\1", text)  # links
    text = re.sub(r"``?([^`]*)``?_*", r"\1", text)
    return re.sub(r"\*\*?([^*\s][^*]*)\*\*?", r"\1", text)


def sentences(text):
    return re.split(r"(?<=[.!?:;])\s+(?=[^\W\d_a-z])", text.strip())


def english(text):
    text = re.sub(r"(?i)n['’]t\b", " not", text.lower())
    return re.sub(r"['’] (s|re|ve|ll|m|d)\b", r"'\1", " ".join(PIECE.findall(text)))


def french(text):
    words = []
    pieces = PIECE.findall(text.lower())
    for i, piece in enumerate(pieces):
        if piece in APOSTROPHES and words and words[-1] in ELIDED:
            words[-1] = ELIDED[words[-1]]
        elif piece in APOSTROPHES and words and words[-1] == "aujourd":
            words[-1] = "aujourd'"
        elif i + 1 < len(pieces) and pieces[i + 1] in APOSTROPHES:
            words.append(piece)
        else:
            words.append(CONTRACTED.get(piece, piece))
    return " ".join(words)


def po_pairs(folder):
    for path in sorted(folder.rglob("*.po")):
        for entry in polib.pofile(str(path)):
            if entry.obsolete or entry.fuzzy or not entry.msgstr or entry.msgid_plural:
                continue
            source, target = plain(entry.msgid), plain(entry.msgstr)
            parts = sentences(source), sentences(target)
            yield from zip(*parts) if len(parts[0]) == len(parts[1]) else [(source, target)]


def multi30k(folder, name):
    sides = (gzip.open(folder / f"{name}.{language}.gz", "rt", encoding="utf-8") for language in ("en", "fr"))
    return [(source.strip(), target.strip()) for source, target in zip(*sides)]


def write(folder, name, pairs):
    pairs = [(english(source), french(target)) for source, target in pairs]
    pairs = [(source, target) for source, target in pairs if source and target]
    for side, language in enumerate(("en", "fr")):
        (folder / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    print(f"{name}: {len(pairs)} pairs")


def main(data, output):
    data, output = pathlib.Path(data), pathlib.Path(output)
    entries = list(po_pairs(data / "localisation" / "po-python-docs-fr"))
    write(output, "train", multi30k(data / "multi30k", "train") + entries)
    write(output, "valid", multi30k(data / "multi30k", "val"))
    lines = (data / "alignment" / "hansards-enfr.src-tgt").read_text(encoding="utf-8").splitlines()
    for side, language in enumerate(("en", "fr")):
        words = (" ".join(line.split("|||")[side].split()).lower() for line in lines)
        (output / f"hansards.{language}").write_text("".join(line + "\n" for line in words), encoding="utf-8")


main(*sys.argv[1:])
