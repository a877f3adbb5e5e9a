#!/usr/bin/env python3
"""A Marian folder of Hugging Face (or of gloss) as Marian itself reads it: model.npz and vocabulary.yml.

    marian_model.py FOLDER OUTPUT

Marian's matrices are [in, out], those of the folder [out, in]; its vocabulary has no <pad>, which is the last row here
and left out. Marian begins its sinusoids 1/(d/2 - 1) apart in the exponent, all others 2/d, and starts decoding from a
zero vector: translations differ in a few places, the work is the same. Needs numpy and safetensors.
"""
import json
import pathlib
import sys

import numpy
from safetensors.numpy import load_file

ATTENTION = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "o"))


def matrix(tensors, name):
    return numpy.ascontiguousarray(tensors[f"{name}.weight"].T.astype(numpy.float32))


def row(tensors, name):
    return tensors[name].astype(numpy.float32).reshape(1, -1)


def add_norm(model, prefix, tensors, name):
    model[f"{prefix}_ln_scale"] = row(tensors, f"{name}.weight")
    model[f"{prefix}_ln_bias"] = row(tensors, f"{name}.bias")


def add_attention(model, prefix, tensors, name):
    for theirs, ours in ATTENTION:
        model[f"{prefix}_W{ours}"] = matrix(tensors, f"{name}.{theirs}")
        model[f"{prefix}_b{ours}"] = row(tensors, f"{name}.{theirs}.bias")
    add_norm(model, f"{prefix}_Wo", tensors, f"{name}_layer_norm")


def add_feed_forward(model, prefix, tensors, name):
    for i in (1, 2):
        model[f"{prefix}_W{i}"] = matrix(tensors, f"{name}.fc{i}")
        model[f"{prefix}_b{i}"] = row(tensors, f"{name}.fc{i}.bias")
    add_norm(model, f"{prefix}_ffn", tensors, f"{name}.final_layer_norm")


def weights(tensors, config, size):
    shared = next(name for name in ("model.shared.weight", "shared.weight") if name in tensors)
    model = {"Wemb": tensors[shared][:size].astype(numpy.float32)}
    bias = tensors.get("final_logits_bias")
    model["decoder_ff_logit_out_b"] = (numpy.zeros((1, size), numpy.float32) if bias is None
                                       else bias.astype(numpy.float32).reshape(1, -1)[:, :size])
    for i in range(config["encoder_layers"]):
        name, prefix = f"model.encoder.layers.{i}", f"encoder_l{i + 1}"
        add_attention(model, f"{prefix}_self", tensors, f"{name}.self_attn")
        add_feed_forward(model, f"{prefix}_ffn", tensors, name)
    for i in range(config["decoder_layers"]):
        name, prefix = f"model.decoder.layers.{i}", f"decoder_l{i + 1}"
        add_attention(model, f"{prefix}_self", tensors, f"{name}.self_attn")
        add_attention(model, f"{prefix}_context", tensors, f"{name}.encoder_attn")
        add_feed_forward(model, f"{prefix}_ffn", tensors, name)
    return model


def settings(config, size):
    """What Marian reads of the model from inside its file, as YAML."""
    return f"""version: v1.12.0
type: transformer
dim-vocabs: [{size}, {size}]
dim-emb: {config["d_model"]}
enc-depth: {config["encoder_layers"]}
dec-depth: {config["decoder_layers"]}
transformer-heads: {config["decoder_attention_heads"]}
transformer-dim-ffn: {config["decoder_ffn_dim"]}
transformer-ffn-activation: {config["activation_function"]}
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-decoder-autoreg: self-attention
tied-embeddings-all: true
"""


def main(folder, output):
    folder, output = pathlib.Path(folder), pathlib.Path(output)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    if not config.get("share_encoder_decoder_embeddings", True) or config.get("normalize_before", False):
        sys.exit("marian_model.py: only models with one vocabulary and post-norm are converted")
    size = len(vocabulary) - 1
    if vocabulary.get("<pad>") != size or vocabulary.get("</s>") != 0:
        sys.exit(f"marian_model.py: in {folder}/vocab.json </s> is not the first piece or <pad> not the last")
    output.mkdir(parents=True, exist_ok=True)
    model = weights(load_file(folder / "model.safetensors"), config, size)
    text = settings(config, size).encode() + b"\0"
    numpy.savez(output / "model.npz", **model, **{"special:model.yml": numpy.frombuffer(text, numpy.int8)})
    lines = (f"{json.dumps(piece)}: {number}\n" for piece, number in vocabulary.items() if number < size)
    (output / "vocabulary.yml").write_text("".join(lines), encoding="utf-8")


main(*sys.argv[1:])
