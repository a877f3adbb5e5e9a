#!/usr/bin/env python3
"""What a user of CTranslate2 in Python writes to translate lines: bench/run times it to its first one.

    translate_line_ct2.py MODEL FOLDER TYPE BEAM LENGTH THREADS

FOLDER holds source.spm and target.spm. LENGTH 0 leaves the length to the model.
"""
import sys

import ctranslate2
import sentencepiece

model, folder, compute_type, beam, length, threads = sys.argv[1:]
source = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/target.spm")
translator = ctranslate2.Translator(model, device="cpu", compute_type=compute_type, intra_threads=int(threads))
options = {"beam_size": int(beam), "length_penalty": 1.0}
if int(length):
    options |= {"min_decoding_length": int(length), "max_decoding_length": int(length)}
for line in sys.stdin:
    pieces = source.encode(line.rstrip("\n"), out_type=str) + ["</s>"]
    print(target.decode(translator.translate_batch([pieces], **options)[0].hypotheses[0]), flush=True)
