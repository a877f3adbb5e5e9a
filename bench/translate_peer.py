#!/usr/bin/env python3
"""CTranslate2 or Marian translates a text: one figure on standard output. bench/run calls it.

    translate_peer.py ctranslate2|marian MODEL TEXT --pieces FOLDER [--what throughput|latency|memory] [OPTIONS]

MODEL is what the peer reads: a converted folder, or a file beside its vocabulary.yml. FOLDER holds the source.spm that
segments TEXT, before any clock starts. The first --warm-up lines are translated before, too.

    throughput  target tokens a second, end symbols included; with --length the forced pieces alone
    latency     milliseconds of a sentence, one after another: the median
    memory      megabytes at the peak that came with the model and the text, Python and its modules left out
"""
import argparse
import pathlib
import resource
import statistics
import time

import sentencepiece


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class CTranslate2:
    import_name = "ctranslate2"

    def __init__(self, module, arguments):
        self.translator = module.Translator(arguments.model, device="cpu", compute_type=arguments.type,
                                            inter_threads=arguments.workers, intra_threads=arguments.threads)
        self.options = {"beam_size": arguments.beam, "length_penalty": 1.0, "max_batch_size": arguments.batch}
        if arguments.length:
            self.options |= {"min_decoding_length": arguments.length, "max_decoding_length": arguments.length}

    def prepare(self, sentences):
        return [pieces + ["</s>"] for pieces in sentences]

    def translate(self, prepared):
        """The numbers of pieces of the translations."""
        return [len(one.hypotheses[0]) for one in self.translator.translate_batch(prepared, **self.options)]


class Marian:
    import_name = "pymarian"

    def __init__(self, module, arguments):
        if arguments.length:
            raise SystemExit("translate_peer.py: Marian has no option for the least length of a translation")
        vocabulary = pathlib.Path(arguments.model).parent / "vocabulary.yml"
        self.translator = module.Translator(
            f"--models {arguments.model} --vocabs {vocabulary} {vocabulary} --cpu-threads {arguments.workers} "
            f"--mini-batch {arguments.batch} --maxi-batch 100 --maxi-batch-sort src --beam-size {arguments.beam} "
            "--normalize 1 --quiet")

    def prepare(self, sentences):
        return [" ".join(pieces) for pieces in sentences]

    def translate(self, prepared):
        return [len(text.split()) for text in self.translator.translate(prepared)]


PEERS = {"ctranslate2": CTranslate2, "marian": Marian}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--pieces", required=True)
    parser.add_argument("--what", choices=("throughput", "latency", "memory"), default="throughput")
    parser.add_argument("--type", default="default", help="CTranslate2's compute_type")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=0, help="exactly so many pieces a translation, no end symbol")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of each worker (CTranslate2)")
    parser.add_argument("--warm-up", type=int, default=64)
    arguments = parser.parse_args()

    peer = PEERS[arguments.peer]
    module = __import__(peer.import_name)
    segmenter = sentencepiece.SentencePieceProcessor(model_file=f"{arguments.pieces}/source.spm")
    lines = pathlib.Path(arguments.text).read_text(encoding="utf-8").split("\n")[:-1]
    sentences = segmenter.encode(lines, out_type=str)
    before = peak_megabytes()
    translator = peer(module, arguments)
    prepared = translator.prepare(sentences)
    translator.translate(prepared[:arguments.warm_up])
    if arguments.what == "latency":
        times = []
        for sentence in prepared:
            start = time.perf_counter()
            translator.translate([sentence])
            times.append(time.perf_counter() - start)
        print(1e3 * statistics.median(times))
        return
    start = time.perf_counter()
    counts = translator.translate(prepared)
    seconds = time.perf_counter() - start
    if arguments.what == "memory":
        print(peak_megabytes() - before)
    else:
        end_symbols = 0 if arguments.length else len(counts)
        print((sum(counts) + end_symbols) / seconds)


main()
