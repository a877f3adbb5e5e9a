// What the layers refuse, naming the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gloss/nn/add_norm.h"
#include "gloss/nn/embedding.h"
#include "gloss/nn/linear.h"
#include "gloss/nn/loss.h"
#include "support/random.h"

namespace gloss::nn {
namespace {

using autograd::Tape;
using autograd::Var;
using ::testing::AllOf;
using ::testing::HasSubstr;

class NnErrors : public ::testing::Test {
 protected:
  Var<float> of(Shape shape) { return Var<float>(tests::random_tensor<float>(context_.arena, shape, 1)); }
  static std::string message_of(const std::function<void()>& run) {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  Context context_;
  Tape<float> tape_{context_};
};

TEST_F(NnErrors, Linear) {
  EXPECT_THAT(message_of([&] {
                linear(tape_, of({2, 5}), of({3, 4}), of({3}));
              }),
              AllOf(HasSubstr("4"), HasSubstr("5")));
  EXPECT_THAT(message_of([&] {
                linear(tape_, of({2, 4}), of({3, 4}), of({7}));
              }),
              AllOf(HasSubstr("3"), HasSubstr("7")));
}

TEST_F(NnErrors, AddNorm) {
  EXPECT_THAT(message_of([&] {
                layer_norm(tape_, of({2, 5}), of({4}), of({4}), 1e-5);
              }),
              AllOf(HasSubstr("4"), HasSubstr("5")));
  EXPECT_THAT(message_of([&] {
                add_norm(tape_, of({2, 5}), of({3, 5}), 0.0, of({5}), of({5}), 1e-5);
              }),
              AllOf(HasSubstr("[2, 5]"), HasSubstr("[3, 5]")));
  EXPECT_THAT(message_of([&] {
                add_dropout(tape_, of({2, 5}), of({3, 5}), 0.0);
              }),
              AllOf(HasSubstr("[2, 5]"), HasSubstr("[3, 5]")));
  Tape<float> training(context_, Tape<float>::Mode::train);
  EXPECT_THAT(message_of([&] { dropout(training, of({2, 5}), 1.0); }), HasSubstr("not 1"));
}

TEST_F(NnErrors, Embedding) {
  const Var<float> table = of({6, 4});
  const auto embedded = [&](std::vector<int32_t> ids, PositionRows<float> positions) {
    return message_of([&] { embed<float>(tape_, table, ids, 1, positions, 0); });
  };
  EXPECT_EQ(embedded({0, 5}, {}), "");
  EXPECT_THAT(embedded({6}, {}), AllOf(HasSubstr("6"), HasSubstr("6 pieces")));
  EXPECT_THAT(embedded({-1}, {}), HasSubstr("-1"));
  EXPECT_THAT(embedded({1}, {of({3, 5}).value(), {0}}), AllOf(HasSubstr("5"), HasSubstr("4")));
  EXPECT_THAT(embedded({1, 2}, {of({3, 4}).value(), {0}}), HasSubstr("1 positions for 2 tokens"));
  EXPECT_THAT(embedded({1}, {of({3, 4}).value(), {3}}), HasSubstr("position 3"));
  EXPECT_THAT(embedded({1}, {of({3, 4}).value(), {-1}}), HasSubstr("position -1"));
}

TEST_F(NnErrors, Loss) {
  const auto loss = [&](std::vector<int32_t> targets, int64_t forbidden, Shape weight, Shape bias) {
    return message_of([&] {
      projection_cross_entropy(tape_, of({2, 4}), of(weight), of(bias), targets, {0.1, forbidden}, 1);
    });
  };
  EXPECT_EQ(loss({0, 5}, 1, {6, 4}, {6}), "");
  EXPECT_THAT(loss({0, 6}, -1, {6, 4}, {6}), HasSubstr("token id 6"));
  EXPECT_THAT(loss({0, -1}, -1, {6, 4}, {6}), HasSubstr("token id -1"));
  EXPECT_THAT(loss({0}, -1, {6, 4}, {6}), HasSubstr("1 targets for 2 rows"));
  EXPECT_THAT(loss({0, 1}, 1, {6, 4}, {6}), HasSubstr("cannot produce"));
  EXPECT_THAT(loss({0, 1}, -1, {6, 5}, {6}), HasSubstr("5"));
  EXPECT_THAT(loss({0, 1}, -1, {6, 4}, {5}), HasSubstr("bias of 5"));
}

}  // namespace
}  // namespace gloss::nn
