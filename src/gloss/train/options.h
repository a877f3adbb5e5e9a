// Everything `gloss train` can be told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gloss/base/options.h"
#include "gloss/kernels/precision.h"
#include "gloss/models/options.h"
#include "gloss/text/training.h"

namespace gloss::train {

enum class Schedule {
  inverse_sqrt,  // linear warm-up to the peak rate, then rate * sqrt(warmup / update)
  paper,  // d_model^-0.5 min(update^-0.5, update warmup^-1.5) (Vaswani et al. 2017, eq. 3), times the rate
};
enum class ValidMetric { perplexity, bleu };

struct TrainOptions : models::ModelOptions {
  // Files.
  std::vector<std::string> train, valid;  // source and target
  std::string output;
  std::string guided_alignment;  // word links of the training text; "": none
  bool overwrite = false;
  bool replace_invalid = false;

  // How long.
  double minutes = 0;  // of training in all, the pieces of a continued run together; 0: no limit
  int64_t max_updates = 0, max_epochs = 0;
  int64_t patience = 10;       // validations without a better result; 0: never stop early
  int64_t validate_every = 0;  // updates; 0: every epoch
  int64_t save_every = 0;      // updates; 0: at validations and every five minutes
  ValidMetric valid_metric = ValidMetric::perplexity;

  // Text.
  int64_t vocab_size = 8000;
  text::SegmentationKind segmentation = text::SegmentationKind::bpe;
  bool joint = true;
  double character_coverage = 1;
  int64_t max_length = 256;

  // Guided attention.
  int64_t guided_layer = -1, guided_head = 0;  // -1: the layer that aligns best by itself
  double guided_weight = 0.1;

  // Optimisation.
  int64_t batch_tokens = 4096;
  int64_t accumulate = 1;
  double learning_rate = 2e-3;
  int64_t warmup = 1000;
  Schedule schedule = Schedule::inverse_sqrt;
  double adam_beta1 = 0.9, adam_beta2 = 0.98, adam_epsilon = 1e-9;
  double clip_norm = 5;
  double label_smoothing = 0.1;
  int64_t average = 5;
  double ema = 0;
  int64_t seed = 1;
  kernels::Precision precision = kernels::Precision::float32;
  int64_t threads = 0;  // 0: all cores

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using text::SegmentationKind;
    visit(
        Field("train", "SRC TGT", "parallel text to learn from, one segment a line").count(2).group("Files"),
        self.train);
    visit(
        Field("valid", "SRC TGT", "parallel text to judge by, which is not learned").count(2).group("Files"),
        self.valid);
    visit(Field("output", "DIR", "the model folder to make, or to go on with").group("Files"), self.output);
    visit(Field("overwrite", "", "replace what the folder holds; what it began goes on").group("Files"),
          self.overwrite);
    visit(Field("replace-invalid", "", "replace bytes that are not UTF-8 by U+FFFD").group("Files"),
          self.replace_invalid);

    visit(
        Field("minutes", "M", "stop after M minutes of training; 0: no limit").at_least(0).group("How long"),
        self.minutes);
    visit(Field("max-updates", "N", "stop after N updates; 0: no limit").at_least(0).group("How long"),
          self.max_updates);
    visit(Field("max-epochs", "N", "stop after N epochs; 0: no limit").at_least(0).group("How long"),
          self.max_epochs);
    visit(Field("patience", "N", "stop after N validations without progress; 0: never")
              .at_least(0)
              .group("How long"),
          self.patience);
    visit(Field("validate-every", "N", "updates between validations; 0: an epoch")
              .at_least(0)
              .group("How long"),
          self.validate_every);
    visit(Field("save-every", "N", "updates between checkpoints; 0: validations and 5 minutes")
              .at_least(0)
              .group("How long"),
          self.save_every);
    visit(Field("valid-metric", "M", "what early stopping and the best model go by")
              .choices<ValidMetric>({{ValidMetric::perplexity, "perplexity"}, {ValidMetric::bleu, "bleu"}})
              .group("How long"),
          self.valid_metric);

    models::ModelOptions::fields(self, visit);

    visit(Field("guided-alignment", "FILE", "word links of the training text to learn, lines like 0-0 1-2")
              .group("Guided attention"),
          self.guided_alignment);
    visit(Field("guided-layer", "N", "layer whose attention learns them; -1: the one that aligns best")
              .range(-1, 1000)
              .group("Guided attention"),
          self.guided_layer);
    visit(Field("guided-head", "N", "head of that layer").range(0, 1 << 24).group("Guided attention"),
          self.guided_head);
    visit(Field("guided-weight", "W", "weight of their cross-entropy beside the loss of the translation")
              .range(0, 1000)
              .group("Guided attention"),
          self.guided_weight);

    visit(Field("vocab-size", "N", "pieces of the vocabulary").range(8, 1e6).group("Text"), self.vocab_size);
    visit(Field("segmentation", "S", "kind of pieces")
              .choices<SegmentationKind>(
                  {{SegmentationKind::bpe, "bpe"}, {SegmentationKind::unigram, "unigram"}})
              .group("Text"),
          self.segmentation);
    visit(Field("joint", "", "a vocabulary for each language").group("Text"), self.joint);
    visit(
        Field("character-coverage", "P", "share of characters that get pieces").range(0.98, 1).group("Text"),
        self.character_coverage);
    visit(Field("max-length", "N", "longer segments (in pieces) are left out").range(2, 1e6).group("Text"),
          self.max_length);

    visit(Field("batch-tokens", "N", "target pieces of a batch").range(1, 1e8).group("Learning"),
          self.batch_tokens);
    visit(Field("accumulate", "N", "batches that an update adds up").range(1, 1e6).group("Learning"),
          self.accumulate);
    visit(Field("precision", "P", "factors of products; all else is float32")
              .choices<kernels::Precision>(
                  {{kernels::Precision::float32, "float32"}, {kernels::Precision::bfloat16, "bfloat16"}})
              .group("Learning"),
          self.precision);
    visit(Field("learning-rate", "R", "highest learning rate; with --schedule paper its factor")
              .at_least(0)
              .group("Learning"),
          self.learning_rate);
    visit(Field("warmup", "N", "updates until the highest learning rate is reached")
              .range(1, 1e9)
              .group("Learning"),
          self.warmup);
    visit(Field("schedule", "S", "learning rate after the warm-up; paper: by d_model too")
              .choices<Schedule>({{Schedule::inverse_sqrt, "inverse-sqrt"}, {Schedule::paper, "paper"}})
              .group("Learning"),
          self.schedule);
    visit(Field("adam-beta1", "B", "decay of Adam's mean of gradients").range_below(0, 1).group("Learning"),
          self.adam_beta1);
    visit(Field("adam-beta2", "B", "decay of Adam's mean of squared gradients")
              .range_below(0, 1)
              .group("Learning"),
          self.adam_beta2);
    visit(Field("adam-epsilon", "E", "what Adam adds to the root of that mean")
              .range(1e-20, 1)
              .group("Learning"),
          self.adam_epsilon);
    visit(Field("clip-norm", "N", "largest norm of the gradient; 0: no limit").at_least(0).group("Learning"),
          self.clip_norm);
    visit(Field("label-smoothing", "E", "share of probability that the right piece gives to the others")
              .range_below(0, 1)
              .group("Learning"),
          self.label_smoothing);
    visit(Field("average", "K", "take the mean of the last K validated models, if it is better")
              .range(1, 1000)
              .group("Learning"),
          self.average);
    visit(Field("ema", "D", "decay of a moving average that is validated instead; 0: none")
              .range_below(0, 1)
              .group("Learning"),
          self.ema);
    visit(Field("seed", "N", "seed of all random choices").at_least(0).group("Learning"), self.seed);
    visit(Field("threads", "N", "threads to compute with; 0: one a core").range(0, 1024).group("Learning"),
          self.threads);
  }
};

}  // namespace gloss::train
