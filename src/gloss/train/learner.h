// The parameters and how they learn: one update from a few batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gloss/data/batches.h"
#include "gloss/models/model_config.h"
#include "gloss/tensor/context.h"
#include "gloss/train/options.h"
#include "gloss/train/state.h"

namespace gloss::train {

class Learner {
 public:
  // The context must outlive the learner. The parameters start from options.seed.
  Learner(const TrainOptions& options, const models::ModelConfig& config, Context& context);

  struct Step {
    int64_t tokens = 0;                  // target tokens of all batches
    double loss = 0;                     // label-smoothed, summed over them
    double negative_log_likelihood = 0;  // the same without smoothing
    int64_t guided_tokens = 0;           // target tokens that have links
    double guided = 0;                   // their attention's cross-entropy, summed
    double gradient_norm = 0;            // before clipping; infinite where Adam could not square what is left
    bool finite() const;                 // neither NaN nor infinity anywhere
  };
  // The gradient of the mean loss over all target tokens of the batches, clipped, makes one step of Adam and
  // of the moving average. `update` counts from 1; `attempt` tells apart the dropout masks of all steps that
  // were ever tried. A step that is not finite() changes nothing but the gradients.
  Step update(const std::vector<data::TokenBatch>& batches, int64_t update, int64_t attempt);

  models::Model& model() { return *model_; }
  OptimiserState& optimiser() { return optimiser_; }
  // The numbers that are validated and become the model: the moving average with --ema, else the parameters.
  std::span<const float> shown() const;
  // Whether the parameters are numbers of a size that a model can work with: their squares add up to a float.
  bool sound() const;

 private:
  void apply(int64_t update, double gradient_norm);

  TrainOptions options_;
  Context& context_;
  std::unique_ptr<models::Model> model_;
  OptimiserState optimiser_;
};

}  // namespace gloss::train
