// What the files of a folder say beside the weights, and what becomes of folders whose files disagree.
#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "gloss/base/error.h"
#include "small_translator.h"

namespace gloss::decode {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ModelFiles : public SmallTranslator {
 protected:
  void SetUp() override {
    copy_ = fs::path(folder_.string() + "-copy");
    fs::copy(folder_, copy_);
  }
  void TearDown() override { fs::remove_all(copy_); }

  void edit(const char* name, const std::function<void(json&)>& change) const {
    json value = json::parse(std::ifstream(copy_ / name));
    change(value);
    std::ofstream(copy_ / name) << value;
  }
  OwnEnd own_end() const { return Translator(copy_).own_end(); }
  std::string refusal() const {
    try {
      const Translator opened(copy_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path copy_;
};

TEST_F(ModelFiles, SayHowLongATranslationMayBeWithTheStartSymbolCounted) {
  EXPECT_EQ(own_end().cap, 512);
  EXPECT_EQ(json::parse(std::ifstream(copy_ / "generation_config.json")).at("max_length"), 513);
  edit("generation_config.json", [](json& j) { j["max_length"] = 40; });
  EXPECT_EQ(own_end().cap, 39);
  fs::remove(copy_ / "generation_config.json");
  EXPECT_EQ(own_end().cap, 512);
  edit("config.json", [](json& j) { j["max_length"] = 30; });
  EXPECT_EQ(own_end().cap, 29);
  edit("config.json", [](json& j) { j["max_length"] = -1; });
  EXPECT_THAT(refusal(), AllOf(HasSubstr("config.json"), HasSubstr("max_length")));
}

TEST_F(ModelFiles, SayWhetherTheEndIsForcedAtTheCap) {
  EXPECT_EQ(own_end().at_cap, AtCap::force_end);
  edit("generation_config.json", [](json& j) { j.erase("forced_eos_token_id"); });
  EXPECT_EQ(own_end().at_cap, AtCap::leave_open);
  // Where the files do not say it in generation_config.json, config.json does, null included.
  fs::remove(copy_ / "generation_config.json");
  EXPECT_EQ(own_end().at_cap, AtCap::force_end);
  edit("config.json", [](json& j) { j["forced_eos_token_id"] = nullptr; });
  EXPECT_EQ(own_end().at_cap, AtCap::leave_open);

  // A plain translation goes by it, any other ends with the end symbol.
  TranslateOptions options;
  options.search.max_length = 3;
  const Translator translator(copy_);
  EXPECT_EQ(search_options(options, translator.own_end()).at_cap, AtCap::force_end);
  options.plain = true;
  EXPECT_EQ(search_options(options, translator.own_end()).at_cap, AtCap::leave_open);
}

TEST_F(ModelFiles, MustAgreeOnTheEndSymbol) {
  edit("config.json", [](json& j) { j["eos_token_id"] = 5; });
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("vocab.json"), HasSubstr("</s>"), HasSubstr("eos_token_id"), HasSubstr("5")));
}

TEST_F(ModelFiles, NeedNotHaveAPad) {
  edit("config.json", [](json& j) { j["pad_token_id"] = nullptr; });
  const Translator translator(copy_);
  EXPECT_EQ(translator.model().symbols().pad, -1);  // and not the last piece, which would then never be said
  EXPECT_EQ(translator.translate(std::vector<std::string>{"The cat."}, short_options()).size(), 1u);
}

TEST_F(ModelFiles, WithNumbersThatMakeNoSenseAreRefusedByName) {
  for (const double epsilon : {0.0, -1e-5, 1.0}) {
    edit("config.json", [&](json& j) { j["layer_norm_epsilon"] = epsilon; });
    EXPECT_THAT(refusal(), AllOf(HasSubstr("config.json"), HasSubstr("epsilon")));
  }
}

}  // namespace
}  // namespace gloss::decode
