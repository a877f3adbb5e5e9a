#include "gloss/io/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/scratch.h"

namespace gloss::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JsonObject object(const std::string& text) {
  return JsonObject(parse_json(text, "config.json"), "config.json");
}

TEST(JsonFile, RoundTrips) {
  const Scratch scratch;
  write_json(scratch / "x.json", nlohmann::ordered_json{{"z", 1}, {"a", {1, 2}}});
  EXPECT_EQ(contents(scratch / "x.json"), "{\n  \"z\": 1,\n  \"a\": [\n    1,\n    2\n  ]\n}\n");
  EXPECT_EQ(read_json(scratch / "x.json")["a"][1], 2);
  EXPECT_EQ(JsonObject::read(scratch / "x.json").whole("z", JsonObject::kPositive), 1);
  EXPECT_THAT(message_of([&] { write_json(scratch / "y.json", nlohmann::json("\xFF")); }),
              HasSubstr("cannot write"));
}

TEST(JsonFile, ReadsEachType) {
  const JsonObject config =
      object(R"({"n":6,"f":6.0,"x":0.1,"b":true,"s":"ä😀","t":["a","b"],"i":[1,2],"o":{"k":1},"nil":null})");
  EXPECT_EQ(config.whole("n", {0, 6}), 6);
  EXPECT_EQ(config.whole("f", {}), 6);
  EXPECT_EQ(config.whole("none", {}, 9), 9);
  EXPECT_EQ(config.whole("nil", {}, 9), 9);
  EXPECT_EQ(config.whole("n", {}, 9), 6);
  EXPECT_EQ(config.number("x"), 0.1);
  EXPECT_EQ(config.number("n", 1.5), 6.0);
  EXPECT_EQ(config.number("none", 1.5), 1.5);
  EXPECT_TRUE(config.flag("b"));
  EXPECT_TRUE(config.flag("nil", true));
  EXPECT_EQ(config.text("s"), "ä😀");
  EXPECT_EQ(config.text("none", "d"), "d");
  EXPECT_THAT(config.texts("t"), ElementsAre("a", "b"));
  EXPECT_THAT(config.wholes("i", JsonObject::kPositive), ElementsAre(1, 2));
  EXPECT_EQ(config.object("o").whole("k", {}), 1);
  EXPECT_TRUE(config.has("n"));
  EXPECT_FALSE(config.has("nil"));
}

TEST(JsonFile, SaysWhatWasExpectedAndWhatCame) {
  const JsonObject config = object(
      R"({"d_model":"x","zero":0,"half":0.5,"big":18446744073709551615,"o":{},"l":[1,"2"],"t":["a",1],"s":1})");
  const auto whole = [&](const char* key) {
    return message_of([&] { config.whole(key, JsonObject::kPositive); });
  };
  EXPECT_EQ(whole("d_model"), "config.json: 'd_model' must be a whole number above 0, not \"x\"");
  EXPECT_EQ(whole("zero"), "config.json: 'zero' must be a whole number above 0, not 0");
  EXPECT_EQ(whole("half"), "config.json: 'half' must be a whole number above 0, not 0.5");
  EXPECT_EQ(whole("big"), "config.json: 'big' must be a whole number above 0, not 18446744073709551615");
  EXPECT_EQ(whole("o"), "config.json: 'o' must be a whole number above 0, not an object");
  EXPECT_EQ(whole("none"), "config.json: 'none' is missing; it must be a whole number above 0");
  EXPECT_EQ(message_of([&] {
              config.whole("zero", {1, 8});
            }),
            "config.json: 'zero' must be a whole number from 1 to 8, not 0");
  EXPECT_EQ(message_of([&] { config.number("d_model"); }),
            "config.json: 'd_model' must be a number, not \"x\"");
  EXPECT_EQ(message_of([&] { config.flag("zero"); }), "config.json: 'zero' must be true or false, not 0");
  EXPECT_EQ(message_of([&] { config.text("s"); }), "config.json: 's' must be a text in quotes, not 1");
  EXPECT_EQ(message_of([&] { config.texts("t"); }), "config.json: 't' must be a list of texts, not of 1");
  EXPECT_THAT(message_of([&] { config.wholes("l", {}); }), HasSubstr("not \"2\""));
  EXPECT_EQ(message_of([&] { config.object("l"); }), "config.json: 'l' must be an object, not a list");
  EXPECT_EQ(message_of([&] { config.object("o").text("k"); }),
            "config.json, 'o': 'k' is missing; it must be a text in quotes");
  EXPECT_EQ(message_of([&] { object("[1]"); }), "config.json: a JSON object was expected, not a list");
}

TEST(JsonFile, RefusesWhatIsNoJson) {
  const auto message = [](const std::string& text) {
    return message_of([&] { parse_json(text, "x.json", {.bytes = 1 << 20, .depth = 8}); });
  };
  EXPECT_EQ(message(""), "x.json: the file is empty, JSON was expected");
  EXPECT_THAT(message("{\n\"a\": tru}"),
              HasSubstr("x.json: not valid JSON: it cannot be read on from line 2, column"));
  EXPECT_THAT(message("{} {}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(message("\"\xC3\x28\""), HasSubstr("not valid JSON"));
  EXPECT_THAT(message("1e999"), HasSubstr("not valid JSON"));
  EXPECT_THAT(message("{\n\"a\": [1, "), HasSubstr("it ends too soon, at line 2"));
  EXPECT_THAT(message(std::string("{}\n\0{}", 6)), HasSubstr("NUL byte at line 2, column 1"));
  EXPECT_THAT(message(R"({"a":{"b":1,"b":2}})"), HasSubstr("the name 'b' stands twice"));
  EXPECT_THAT(message(std::string(9, '[') + std::string(9, ']')), HasSubstr("nested deeper than 8 levels"));
  EXPECT_THAT(message(std::string(1'000'000, '[')), HasSubstr("nested deeper than 8 levels"));
  EXPECT_THAT(message(std::string((1 << 20) + 1, ' ')), HasSubstr("1048577 bytes of JSON"));
  EXPECT_LT(message("{\"" + std::string(100'000, 'k') + "\": nonsense}").size(), 300u);
  const std::string deep = std::string(8, '[') + std::string(8, ']');
  EXPECT_TRUE(parse_json(deep, "x", {.bytes = 100, .depth = 8}).is_array());
}

TEST(JsonFile, AllowsTheSameNameInDifferentObjects) {
  EXPECT_EQ(object(R"({"a":{"k":1},"b":{"k":2},"k":3})").whole("k", {}), 3);
}

TEST(JsonFile, ShowsHostileNamesHarmlessly) {
  const std::string message = message_of([] { object(R"({"a\u001b[31m\n":1,"a\u001b[31m\n":2})"); });
  EXPECT_EQ(message, "config.json: the name 'a\\x1B[31m\\x0A' stands twice");
  const Scratch scratch;
  put(scratch / "big.json", std::string(100, ' '));
  EXPECT_THAT(message_of([&] { read_json(scratch / "big.json", {.bytes = 10, .depth = 4}); }),
              HasSubstr("holds 100 bytes, at most 10"));
}

}  // namespace
}  // namespace gloss::io
