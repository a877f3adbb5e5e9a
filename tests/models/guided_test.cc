// A head of cross-attention that word links guide, in models of both kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gloss/models/model_config.h"
#include "gloss/models/rnn_search_model.h"
#include "gloss/models/transformer_model.h"
#include "support/compare.h"
#include "support/gradient_check.h"
#include "support/random.h"
#include "text/fixture.h"

namespace gloss::models {
namespace {

using autograd::Tape;
using autograd::Var;
using ::testing::HasSubstr;
using text::error_of;

constexpr int32_t kEnd = 0, kPad = 29;

TransformerConfig transformer_config() {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 30;
  config.d_model = 8;
  config.encoder = {1, 2, 8};
  config.decoder = {2, 2, 8};
  config.symbols = {kEnd, kPad, kPad};
  config.dropout = 0;
  config.guided = {1, 1};
  return config;
}
RnnSearchConfig recurrent_config() {
  RnnSearchConfig config;
  config.source_vocabulary = config.target_vocabulary = 30;
  config.embedding = 6;
  config.hidden = config.attention = 5;
  config.maxout = 4;
  config.symbols = {kEnd, kPad, kPad};
  return config;
}

const Tokens kSource = tests::random_sequences({4, 2, 6}, 1, kPad - 1, kEnd, 1),
             kTarget = tests::random_sequences({3, 5, 2}, 1, kPad - 1, kEnd, 50);
// Token 0 with one, token 1 with two, none of the second sequence's first, the first of the third.
const std::vector<RowLink> kLinks{{0, 2}, {1, 0}, {1, 1}, {4, 4}, {5, 5}, {8, 9}};

template <class Network, class Config>
std::string wrong_gradient(const Config& config, AttentionHead head) {
  Context context(2);
  Network network(config, context.arena);
  network.parameters().initialise(5);
  network.parameters().allocate_gradients(context.arena);
  const AlignmentGuide guide{head, kLinks, 0.7};
  tests::GradientCheck check;
  check.parameters = &network.parameters();
  return tests::check_gradients(
      context, {},
      [&](Tape<double>& tape, const auto&) {
        return std::vector<Var<double>>{network.loss(tape, kSource, kTarget, {0.1, 0.3, &guide}).sum};
      },
      check);
}

TEST(GuidedModel, GradientsAreThoseOfFiniteDifferences) {
  EXPECT_EQ(wrong_gradient<Transformer<double>>(transformer_config(), {1, 1}), "");
  EXPECT_EQ(wrong_gradient<RnnSearch<double>>(recurrent_config(), {0, 0}), "");
}

// The cross-entropy is that of the weights which `attend` shows, a Transformer's where a token is read; the
// loss of the translation keeps every bit.
TEST(GuidedModel, LearnsFromTheWeightsThatAttendShows) {
  for (const ModelConfig& config : {ModelConfig(transformer_config()), ModelConfig(recurrent_config())}) {
    Context context(2);
    const auto model = make_model(config, context.arena);
    model->initialise(3);
    const AttentionChoice look = model->alignment();
    const AttentionHead head{look.layer, look.head.value_or(0)};
    const AlignmentGuide guide{head, kLinks, 0.7};
    Tape<float> tape(context);
    const auto plain = model->loss(tape, kSource, kTarget, {0.1, 0.25});
    const auto guided = model->loss(tape, kSource, kTarget, {0.1, 0.25, &guide});
    EXPECT_EQ(plain.smoothed, guided.smoothed);
    EXPECT_EQ(plain.guided_tokens, 0);

    const auto maps = model->attend(tape, kSource, kTarget, {{AttentionKind::cross}, head.layer, false});
    std::vector<std::vector<float>> weights;
    for (int64_t s = 0; s < 3; ++s)
      weights.push_back(
          maps.at(0).weights_of(s, head.head, kTarget.offsets.length(s), kSource.offsets.length(s)));
    double expected = 0;
    int64_t tokens = 0;
    for (size_t i = 0; i < kLinks.size(); ++i) {
      int64_t s = 0;
      while (kTarget.offsets.end(s) <= kLinks[i].target) ++s;
      const int64_t row = row_of(kLinks[i].target - kTarget.offsets.begin(s), look.step);
      const auto same = std::ranges::count(kLinks, kLinks[i].target, &RowLink::target);
      expected -= std::log(weights[static_cast<size_t>(s)][static_cast<size_t>(
                      row * kSource.offsets.length(s) + kLinks[i].source - kSource.offsets.begin(s))]) /
                  static_cast<double>(same);
      tokens += i == 0 || kLinks[i - 1].target != kLinks[i].target;
    }
    EXPECT_NEAR(guided.guided, expected, 1e-4) << model->type();
    EXPECT_EQ(guided.guided_tokens, tokens);
    EXPECT_NEAR(guided.sum.value().data()[0], plain.sum.value().data()[0] + 0.25 * 0.7 * expected, 1e-4);
  }
}

// No step of a Transformer reads the last token, so a link of it says nothing.
TEST(GuidedModel, ATokenThatNoStepReadsIsNotGuided) {
  Context context(1);
  const auto model = make_model(transformer_config(), context.arena);
  model->initialise(3);
  const std::vector<RowLink> last{{2, 0}};
  const AlignmentGuide guide{{1, 1}, last, 1};
  Tape<float> tape(context);
  EXPECT_EQ(model->loss(tape, kSource, kTarget, {0, 1, &guide}).guided_tokens, 0);
}

TEST(GuidedModel, RefusesLinksThatDoNotFit) {
  Context context(1);
  const auto model = make_model(transformer_config(), context.arena);
  Tape<float> tape(context);
  const auto refused = [&](std::vector<RowLink> links, AttentionHead head = {1, 1}) {
    const AlignmentGuide guide{head, links, 1};
    return error_of([&] { model->loss(tape, kSource, kTarget, {0, 1, &guide}); });
  };
  EXPECT_THAT(refused({{0, 5}}), HasSubstr("a link leaves its sentence: source token 5 of target token 0"));
  EXPECT_THAT(refused({{10, 0}}), HasSubstr("a batch of 10 target tokens"));
  EXPECT_THAT(refused({{1, 0}, {0, 0}}), HasSubstr("in ascending order"));
  EXPECT_THAT(refused({{0, 0}}, {2, 0}), HasSubstr("no layer 2"));
  EXPECT_THAT(refused({{0, 0}}, {0, 2}), HasSubstr("no head 2 to guide: a layer has 2"));
}

TEST(GuidedModel, TheHeadStandsInTheConfiguration) {
  const TransformerConfig config = transformer_config();
  const io::JsonObject json(nlohmann::json::parse(to_json(config).dump()), "config.json");
  EXPECT_EQ(transformer_from_json(json), config);
  EXPECT_EQ(alignment_layer(config), 1);
  TransformerConfig plain = config;
  plain.guided.reset();
  EXPECT_FALSE(to_json(plain).contains("guided_layer"));
  EXPECT_EQ(alignment_layer(plain), 0);
  TransformerConfig wrong = config;
  wrong.guided = {2, 0};
  EXPECT_THAT(error_of([&] { validate(wrong); }),
              HasSubstr("no layer 2 of cross-attention to guide: there are 2, 0 to 1"));
  wrong.guided = {0, 4};
  EXPECT_THAT(error_of([&] { validate(wrong); }), HasSubstr("no head 4"));
}

}  // namespace
}  // namespace gloss::models
