"""Compares gloss with transformers and CTranslate2 on one model folder: pieces, log-probabilities, translations.

Usage: compare.py MODEL SOURCE [--target FILE] [--lines N] ...   (compare.sh installs what this imports)
Exit status 0 when everything that was compared is as equal as it must be, 1 otherwise.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Before transformers is imported: everything is in the folder, nothing is to be fetched.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

LOG_PROBABILITY_TOLERANCE = 1e-4  # relative, for values under 1 absolute
EQUAL_TEXTS = 0.99


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Compares gloss with transformers and CTranslate2 on one model folder."
    )
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path, help="text, one segment a line")
    parser.add_argument(
        "--target",
        type=pathlib.Path,
        help="translations to force; without, those that gloss makes with beam search",
    )
    parser.add_argument("--gloss", default="gloss", help="the program")
    parser.add_argument("--lines", type=int, default=200, help="how many are compared")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--max-length", type=int, default=128, help="pieces, with the end symbol")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--skip", nargs="*", default=[], choices=["transformers", "ctranslate2"])
    return parser.parse_args()


def read_lines(path):
    """The lines of a UTF-8 file; only a newline ends a line, as in gloss."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    return lines[:-1] if text.endswith("\n") else lines


class Gloss:
    """The program, called with --json."""

    def __init__(self, arguments):
        self.program = arguments.gloss
        self.model = str(arguments.model)
        self.threads = str(arguments.threads)

    def _run(self, *arguments, text=None):
        command = [self.program, *arguments, "--threads", self.threads]
        done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8")
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def translate(self, lines, beam, max_length):
        text = "".join(line + "\n" for line in lines)
        options = ["--plain", "--beam", str(beam), "--max-length", str(max_length), "--json"]
        return self._run("translate", self.model, *options, text=text)

    def score(self, sources, targets):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, lines in (("source", sources), ("target", targets)):
                files.append(os.path.join(folder, name))
                with open(files[-1], "w", encoding="utf-8", newline="\n") as out:
                    out.writelines(line + "\n" for line in lines)
            return self._run("score", self.model, "--source", files[0], "--target", files[1], "--json")


class Transformers:
    """MarianMTModel and MarianTokenizer on the folder, in eager mode and float32."""

    def __init__(self, arguments):
        import torch
        import transformers

        transformers.utils.logging.disable_progress_bar()
        self.torch = torch
        self.name = f"transformers {transformers.__version__}"
        torch.set_num_threads(arguments.threads)
        self.tokenizer = transformers.MarianTokenizer.from_pretrained(arguments.model)
        self.model = transformers.MarianMTModel.from_pretrained(arguments.model, attn_implementation="eager")
        self.model = self.model.float().eval()
        # Not convert_ids_to_tokens, which knows the target's vocabulary alone.
        self.source_by_id = {number: piece for piece, number in self.tokenizer.encoder.items()}
        self.target_by_id = self.source_by_id
        if self.tokenizer.separate_vocabs:
            self.target_by_id = {number: piece for piece, number in self.tokenizer.target_encoder.items()}
        self.batch = arguments.batch

    def source_pieces(self, line):
        return [self.source_by_id[number] for number in self.tokenizer(line).input_ids]

    def target_pieces(self, line):
        return [self.target_by_id[number] for number in self.tokenizer(text_target=line).input_ids]

    def log_probabilities(self, sources, targets):
        """For each pair log P of every target piece, from a padded batch forced through the model."""
        torch, config = self.torch, self.model.config
        results = []
        for first in range(0, len(sources), self.batch):
            inputs = self.tokenizer(sources[first : first + self.batch], return_tensors="pt", padding=True)
            ids = [self.tokenizer(text_target=line).input_ids for line in targets[first : first + self.batch]]
            longest = max(map(len, ids))
            decoder_input = torch.full((len(ids), longest), config.pad_token_id)
            for row, target in enumerate(ids):
                decoder_input[row, 0] = config.decoder_start_token_id
                decoder_input[row, 1 : len(target)] = torch.tensor(target[:-1], dtype=torch.long)
            with torch.no_grad():
                logits = self.model(**inputs, decoder_input_ids=decoder_input, use_cache=False).logits
            log_p = torch.log_softmax(logits.double(), -1)
            for row, target in enumerate(ids):
                results.append([log_p[row, t, number].item() for t, number in enumerate(target)])
        return results

    def translate(self, lines, beam, max_length):
        texts = []
        how = {"num_beams": beam, "do_sample": False, "max_new_tokens": max_length, "max_length": None}
        if beam > 1:
            how.update(length_penalty=1.0, early_stopping="never")
        else:
            how.update(length_penalty=None, early_stopping=None)
        for first in range(0, len(lines), self.batch):
            inputs = self.tokenizer(lines[first : first + self.batch], return_tensors="pt", padding=True)
            with self.torch.no_grad():
                ids = self.model.generate(**inputs, **how)
            texts += self.tokenizer.batch_decode(
                ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        return texts


class CTranslate2:
    """The folder as ct2-transformers-converter converts it, with SentencePiece in front and behind."""

    def __init__(self, arguments, folder):
        import ctranslate2
        import sentencepiece

        self.name = f"CTranslate2 {ctranslate2.__version__}"
        converter = pathlib.Path(sys.executable).parent / "ct2-transformers-converter"
        converted = os.path.join(folder, "converted")
        done = subprocess.run(
            [converter, "--model", arguments.model, "--output_dir", converted],
            capture_output=True,
            encoding="utf-8",
        )
        if done.returncode != 0:
            sys.exit(f"ct2-transformers-converter does not convert {arguments.model}:\n{done.stderr}")
        self.translator = ctranslate2.Translator(
            converted, device="cpu", compute_type="float32", intra_threads=arguments.threads
        )
        self.source = sentencepiece.SentencePieceProcessor(model_file=str(arguments.model / "source.spm"))
        self.target = sentencepiece.SentencePieceProcessor(model_file=str(arguments.model / "target.spm"))
        self.batch = arguments.batch

    def translate(self, lines, max_length):
        results = self.translator.translate_batch(
            [self.source.encode(line, out_type=str) + ["</s>"] for line in lines],
            beam_size=1,
            max_decoding_length=max_length - 1,  # gloss counts the end symbol
            max_batch_size=self.batch,
        )
        return [
            self.target.decode([piece for piece in result.hypotheses[0] if piece != "<unk>"])
            for result in results
        ]


class Report:
    """The table, and the verdict."""

    def __init__(self):
        self.rows = []
        self.all_good = True

    def add(self, what, found, needed, good):
        self.rows.append((what, found, needed, "yes" if good else "NO"))
        self.all_good &= good

    def share(self, what, ours, theirs, needed, show):
        """How many items are equal; shows the first that differ."""
        if len(ours) != len(theirs):
            raise ValueError(f"{what}: {len(ours)} results against {len(theirs)}")
        different = [i for i in range(len(ours)) if ours[i] != theirs[i]]
        for i in different[:3]:
            print(f"{what}, line {i + 1}: {show}", f"  gloss  {ours[i]}", f"  other  {theirs[i]}", sep="\n")
        equal = len(ours) - len(different)
        found = f"{100 * equal / len(ours):.2f} % ({equal} of {len(ours)})"
        self.add(what, found, f">= {100 * needed:g} %", equal >= needed * len(ours))

    def print(self):
        header = ("compared", "found", "needed", "holds")
        widths = [max(len(row[i]) for row in [header, *self.rows]) for i in range(4)]
        for row in [header, tuple("-" * width for width in widths), *self.rows]:
            print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def worst_difference(ours, theirs):
    """The largest |a - b| / max(1, |b|) over all pieces; NaN counts as infinite."""
    worst = 0.0
    for ours_of_line, theirs_of_line in zip(ours, theirs, strict=True):
        for a, b in zip(ours_of_line, theirs_of_line, strict=True):
            difference = abs(a - b) / max(1.0, abs(b))
            worst = max(worst, difference if difference == difference else float("inf"))
    return worst


def compare_with_transformers(report, arguments, gloss, lines, greedy, beam):
    peer = Transformers(arguments)
    print(f"{peer.name}, torch {peer.torch.__version__}")
    targets = [one["translation"] for one in beam]
    if arguments.target:
        targets = read_lines(arguments.target)
        if len(targets) < arguments.all_lines:
            sys.exit(f"{arguments.target} has {len(targets)} lines, {arguments.source} more: they must pair")
        targets = [targets[i] for i in arguments.chosen]
    scored = gloss.score(lines, targets)

    report.share(
        "pieces of the source",
        [one["source_pieces"] for one in beam],
        [peer.source_pieces(line) for line in lines],
        1,
        "pieces",
    )
    target_pieces = [peer.target_pieces(line) for line in targets]
    report.share("pieces of the target", [one["pieces"] for one in scored], target_pieces, 1, "pieces")
    # Lines in other pieces have other probabilities; the row above has counted them.
    same = [i for i, one in enumerate(scored) if one["pieces"] == target_pieces[i]]
    worst = worst_difference(
        [scored[i]["token_log_probabilities"] for i in same],
        peer.log_probabilities([lines[i] for i in same], [targets[i] for i in same]),
    )
    count = sum(len(scored[i]["pieces"]) for i in same)
    report.add(
        f"log-probabilities of {count} forced pieces",
        f"{worst:.1e} relative at most",
        f"<= {LOG_PROBABILITY_TOLERANCE:g}",
        count > 0 and worst <= LOG_PROBABILITY_TOLERANCE,
    )
    for width, ours in ((1, greedy), (arguments.beam, beam)):
        theirs = peer.translate(lines, width, arguments.max_length)
        what = "greedy translations" if width == 1 else f"translations with beam {width}"
        report.share(f"{what}, transformers", [one["translation"] for one in ours], theirs, EQUAL_TEXTS, "text")


def main():
    arguments = parse_arguments()
    source = read_lines(arguments.source)
    arguments.all_lines = len(source)
    # A blank line never reaches a model in gloss; transformers would translate its end symbol.
    arguments.chosen = [i for i, line in enumerate(source) if line.strip()][: arguments.lines]
    lines = [source[i] for i in arguments.chosen]
    if not lines:
        sys.exit(f"{arguments.source} holds no text")

    gloss = Gloss(arguments)
    greedy = gloss.translate(lines, 1, arguments.max_length)
    beam = gloss.translate(lines, arguments.beam, arguments.max_length)
    report = Report()
    if "transformers" not in arguments.skip:
        compare_with_transformers(report, arguments, gloss, lines, greedy, beam)
    if (arguments.model / "target_vocab.json").exists():
        print("CTranslate2's converter reads one vocabulary of a Marian folder; this one has two: skipped")
    elif "ctranslate2" not in arguments.skip:
        with tempfile.TemporaryDirectory() as folder:
            peer = CTranslate2(arguments, folder)
            print(peer.name)
            theirs = peer.translate(lines, arguments.max_length)
        report.share(
            "greedy translations, CTranslate2",
            [one["translation"] for one in greedy],
            theirs,
            EQUAL_TEXTS,
            "text",
        )
    report.print()
    return 0 if report.all_good else 1


if __name__ == "__main__":
    sys.exit(main())
