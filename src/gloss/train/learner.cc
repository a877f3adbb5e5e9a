#include "gloss/train/learner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gloss/kernels/adam.h"
#include "gloss/train/schedule.h"

namespace gloss::train {

using autograd::Tape;

namespace {

double norm(ThreadPool& pool, std::span<const float> x) {
  return std::sqrt(kernels::sum_of_squares<float>(pool, x));
}

// Whether the squares of numbers with this norm add up to a float; no for NaN.
bool squares_fit(double norm) {
  return norm <= std::sqrt(static_cast<double>(std::numeric_limits<float>::max()));
}

double clipped(double norm, double limit) {
  return limit > 0 && norm > limit ? limit : norm;
}

}  // namespace

Learner::Learner(const TrainOptions& options, const models::ModelConfig& config, Context& context)
    : options_(options), context_(context), model_(models::make_model(config, context.arena)) {
  kernels::require_precision(options.precision);
  auto& parameters = model_->parameters();
  parameters.allocate_gradients(context.arena);
  model_->initialise(static_cast<uint64_t>(options.seed));
  const std::span<const float> values = parameters.values();
  optimiser_.first.assign(values.size(), 0);
  optimiser_.second.assign(values.size(), 0);
  if (options.ema > 0) optimiser_.average.assign(values.begin(), values.end());
}

bool Learner::Step::finite() const {
  return std::isfinite(loss) && std::isfinite(gradient_norm);
}

std::span<const float> Learner::shown() const {
  if (!optimiser_.average.empty()) return optimiser_.average;
  return model_->parameters().values();
}

bool Learner::sound() const {
  return squares_fit(norm(context_.pool, model_->parameters().values()));
}

Learner::Step Learner::update(const std::vector<data::TokenBatch>& batches, int64_t update, int64_t attempt) {
  const auto& parameters = model_->parameters();
  std::ranges::fill(parameters.gradients(), 0.0f);
  Step step;
  for (const data::TokenBatch& batch : batches) step.tokens += batch.target.offsets.total();
  const RandomKey key =
      RandomKey(static_cast<uint64_t>(options_.seed)).with("dropout").with(static_cast<uint64_t>(attempt));
  const Tensor<float> one(context_.arena, {1});
  one.fill(1);
  for (size_t i = 0; i < batches.size(); ++i) {
    Tape<float> tape(context_, Tape<float>::Mode::train, key.with(i), options_.precision);
    const models::AttentionChoice look = model_->alignment();
    const models::AlignmentGuide guide{
        {look.layer, look.head.value_or(0)}, batches[i].links, options_.guided_weight};
    const auto loss = model_->loss(tape, batches[i].source, batches[i].target,
                                   {options_.label_smoothing, 1.0 / static_cast<double>(step.tokens),
                                    options_.guided ? &guide : nullptr});
    tape.backward(loss.sum, one);
    step.loss += loss.smoothed;
    step.negative_log_likelihood += loss.negative_log_likelihood;
    step.guided_tokens += loss.guided_tokens;
    step.guided += loss.guided;
  }
  // The norm is needed for clipping anyway, and no NaN or infinity hides from it.
  step.gradient_norm = norm(context_.pool, parameters.gradients());
  // Adam keeps squares as floats: one that became infinite would hold its parameter still for ever.
  const double left = clipped(step.gradient_norm, options_.clip_norm);
  if (std::isfinite(left) && !squares_fit(left)) step.gradient_norm = std::numeric_limits<double>::infinity();
  if (step.finite()) apply(update, step.gradient_norm);
  return step;
}

void Learner::apply(int64_t update, double gradient_norm) {
  const auto& parameters = model_->parameters();
  const std::span<const float> gradients = parameters.gradients();
  kernels::Adam adam;
  adam.learning_rate = learning_rate(options_, update);
  adam.beta1 = options_.adam_beta1;
  adam.beta2 = options_.adam_beta2;
  adam.epsilon = options_.adam_epsilon;
  adam.step = update;
  if (const double left = clipped(gradient_norm, options_.clip_norm); left < gradient_norm)
    adam.gradient_scale = left / gradient_norm;
  kernels::adam<float>(context_.pool, adam, parameters.values(), gradients, optimiser_.first,
                       optimiser_.second);
  if (options_.ema > 0) {
    kernels::moving_average<float>(context_.pool, average_decay(options_, update),
                                   std::span<const float>(parameters.values()), optimiser_.average);
  }
}

}  // namespace gloss::train
