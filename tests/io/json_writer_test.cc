// JSON written as it comes reads back as what went in.
#include "gloss/io/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace gloss::io {
namespace {

template <class F>
std::string written(F write) {
  std::string text;
  JsonWriter json([&](std::string_view piece) { text += piece; });
  write(json);
  json.flush();
  return text;
}

TEST(JsonWriter, NestsAndSetsCommas) {
  EXPECT_EQ(written([](JsonWriter& json) {
              json.begin_object();
              json.key("a");
              json.begin_array();
              json.whole(-3);
              json.begin_array();
              json.end_array();
              json.begin_object();
              json.end_object();
              json.null();
              json.end_array();
              json.key("b");
              json.boolean(true);
              json.key("c\"");
              json.text("x\n\xff");
              json.end_object();
            }),
            "{\"a\":[-3,[],{},null],\"b\":true,\"c\\\"\":\"x\\n\uFFFD\"}");
}

TEST(JsonWriter, NumbersReadBackAndAreFractions) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const double x : {0.0, -0.0, 1.0, -12.0, 0.1, 1e-8, 0.33333333, 1e17, 1e300, -5e-324, 123456789.125}) {
    const std::string text = written([&](JsonWriter& json) { json.number(x); });
    EXPECT_EQ(nlohmann::json::parse(text).get<double>(), x) << text;
    EXPECT_TRUE(nlohmann::json::parse(text).is_number_float()) << text;
  }
  for (const double x : {kInfinite, -kInfinite, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(written([&](JsonWriter& json) { json.number(x); }), "null");
}

// However many numbers come, what waits to be handed on stays small.
TEST(JsonWriter, HandsOnInSmallPieces) {
  size_t largest = 0, all = 0;
  JsonWriter json([&](std::string_view piece) {
    largest = std::max(largest, piece.size());
    all += piece.size();
  });
  json.begin_array();
  for (int i = 0; i < 100000; ++i) json.number(i / 7.0);
  json.end_array();
  json.flush();
  EXPECT_GT(all, size_t{1000000});
  EXPECT_LT(largest, size_t{100000});
}

}  // namespace
}  // namespace gloss::io
