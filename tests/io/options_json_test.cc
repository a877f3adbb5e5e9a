#include "gloss/io/options_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/scratch.h"

namespace gloss::io {
namespace {

using ::testing::ElementsAre;

enum class Order { post, pre };

struct Sample {
  int64_t batch_tokens = 4096;
  double dropout = 0.1;
  bool quiet = true;
  std::string preset = "tiny";
  Order order = Order::pre;
  std::vector<std::string> files;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("batch-tokens", "N", "").range(1, 1e9), self.batch_tokens);
    visit(Field("dropout", "P", "").range_below(0, 1), self.dropout);
    visit(Field("quiet", "", ""), self.quiet);
    visit(Field("preset", "NAME", "").one_of({"tiny", "small"}), self.preset);
    visit(Field("order", "O", "").choices<Order>({{Order::post, "post"}, {Order::pre, "pre"}}), self.order);
    visit(Field("files", "FILE", ""), self.files);
  }
};

JsonObject object(const std::string& text) {
  return JsonObject(parse_json(text, "train.json"), "train.json");
}

TEST(OptionsJson, RoundTrips) {
  Sample sample;
  sample.dropout = 1.0 / 3;
  sample.files = {"a", "b"};
  sample.order = Order::post;
  const nlohmann::ordered_json json = options_to_json(sample);
  EXPECT_EQ(
      json.dump(),
      R"({"batch_tokens":4096,"dropout":0.3333333333333333,"quiet":true,"preset":"tiny","order":"post",)"
      R"("files":["a","b"]})");
  const Typed<Sample> back = options_from_json<Sample>(object(json.dump()));
  EXPECT_EQ(back.value.dropout, 1.0 / 3);
  EXPECT_EQ(back.value.order, Order::post);
  EXPECT_THAT(back.value.files, ElementsAre("a", "b"));
  EXPECT_EQ(back.typed.size(), 6u);
}

TEST(OptionsJson, KeepsTheBaseWhereNothingIsSaid) {
  Sample base;
  base.batch_tokens = 7;
  const Typed<Sample> options = options_from_json(object(R"({"preset":"small"})"), base);
  EXPECT_EQ(options.value.batch_tokens, 7);
  EXPECT_THAT(options.typed, ElementsAre("preset"));
}

TEST(OptionsJson, RefusesWithFileAndName) {
  const auto message = [](const std::string& text) {
    return message_of([&] { options_from_json<Sample>(object(text)); });
  };
  EXPECT_EQ(message(R"({"dropout":2})"), "train.json: 'dropout' must be a number from 0 to below 1, not '2'");
  EXPECT_EQ(message(R"({"dropout":"x"})"), "train.json: 'dropout' must be a number, not \"x\"");
  EXPECT_EQ(message(R"({"batch_tokens":0})"),
            "train.json: 'batch_tokens' must be a whole number from 1 to 1000000000, not '0'");
  EXPECT_EQ(message(R"({"preset":"huge"})"), "train.json: 'preset' must be tiny or small, not 'huge'");
  EXPECT_EQ(message(R"({"order":"?"})"), "train.json: 'order' must be post or pre, not '?'");
  EXPECT_EQ(message(R"({"quiet":1})"), "train.json: 'quiet' must be true or false, not 1");
  EXPECT_EQ(message(R"({"batch-tokens":1})"), "train.json: there is no option 'batch-tokens'");
}

}  // namespace
}  // namespace gloss::io
