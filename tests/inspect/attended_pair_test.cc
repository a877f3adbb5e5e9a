#include "gloss/inspect/attended_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "decode/small_translator.h"
#include "gloss/inspect/attended_json.h"
#include "gloss/inspect/attention_picture.h"
#include "gloss/inspect/attention_view.h"

namespace gloss::inspect {
namespace {

using models::AttentionKind;
using models::AttentionMap;

const std::string kTrained = GLOSS_TEST_SHARED "/golden/hf-marian-multi30k-en-de";
constexpr const char* kLine = "The cat sat on the mat. Who let the dogs out?";

AttendOptions everything() {
  AttendOptions options;
  options.request.kinds = {AttentionKind::cross, AttentionKind::encoder, AttentionKind::decoder};
  options.request.tensors = true;
  options.translate.search.beam = 2;
  return options;
}

class Attended : public decode::SmallTranslator {
 protected:
  AttendedPair attended(const std::string& line, const std::optional<std::string>& target = std::nullopt) {
    return attend(*translator_, context_, line, target, everything());
  }
  Context context_{1};
};

// n_q and n_k of a map.
std::pair<size_t, size_t> shape_of(const AttendedPair& pair, const AttentionMap& map) {
  const size_t n = pair.target.ids.size(), m = pair.source.ids.size();
  return {map.kind == AttentionKind::encoder ? m : n, map.kind == AttentionKind::decoder ? n : m};
}

TEST_F(Attended, RowsSumToOneAndTheFutureIsHidden) {
  const AttendedPair pair = attended(kLine);
  const models::Model& model = translator_->model();
  ASSERT_EQ(pair.maps.size(), static_cast<size_t>(2 * model.attention_layers(AttentionKind::cross) +
                                                  model.attention_layers(AttentionKind::encoder)));
  for (const AttentionMap& map : pair.maps) {
    const auto [n_q, n_k] = shape_of(pair, map);
    ASSERT_EQ(map.weights.size(), static_cast<int64_t>(n_q * n_k) * map.heads);
    const float *weight = map.weights.data(), *score = map.scores.data();
    for (int64_t head = 0; head < map.heads; ++head) {
      for (size_t i = 0; i < n_q; ++i) {
        double sum = 0;
        for (size_t j = 0; j < n_k; ++j, ++weight, ++score) {
          sum += static_cast<double>(*weight);
          const bool hidden = map.kind == AttentionKind::decoder && j > i;
          EXPECT_EQ(hidden, std::isinf(*score));
          if (hidden) {
            EXPECT_EQ(*weight, 0);
          }
        }
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  }
}

// The attention shown beside a found translation is that of forcing it.
TEST(AttendedPair, OfAFoundTranslationEqualsTheForcedOne) {
  if (!std::filesystem::exists(kTrained)) GTEST_SKIP() << "needs " << kTrained;
  const decode::Translator translator(kTrained);
  Context context(1);
  const std::string line = "A man in an orange hat starring at something.";
  const auto attended = [&](const std::optional<std::string>& target) {
    return attend(translator, context, line, target, everything());
  };
  const AttendedPair found = attended(std::nullopt), forced = attended(found.target.text);
  EXPECT_FALSE(found.forced);
  EXPECT_TRUE(forced.forced);
  ASSERT_EQ(forced.target.ids, found.target.ids);
  EXPECT_EQ(forced.target.words.texts, found.target.words.texts);
  EXPECT_EQ(forced.target.words.word_of, found.target.words.word_of);
  EXPECT_NEAR(forced.log_probability, found.log_probability, 1e-5);
  EXPECT_NEAR(forced.score, found.score, 1e-5);
  for (size_t i = 0; i < found.maps.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(forced.maps[i].weights.values(), found.maps[i].weights.values()));
  EXPECT_LT(attended("Ein Hund schläft.").log_probability, found.log_probability);
}

// q, k, v and concat are what the layer computed: softmax(q k^T / sqrt(d_k)) v gives concat again.
TEST_F(Attended, TheMatricesInBetweenFitTogether) {
  const AttendedPair pair = attended(kLine);
  for (const AttentionMap& map : pair.maps) {
    const auto [n_q, n_k] = shape_of(pair, map);
    const auto named = [&](const std::string& name) {
      for (const auto& [known, tensor] : map.tensors) {
        if (known == name) return tensor;
      }
      ADD_FAILURE() << name;
      return Tensor<float>();
    };
    const Tensor<float> q = named("q"), k = named("k"), v = named("v"), concat = named("concat");
    ASSERT_EQ(q.rows(), static_cast<int64_t>(n_q));
    ASSERT_EQ(k.rows(), static_cast<int64_t>(n_k));
    EXPECT_EQ(named("output").rows(), q.rows());
    const int64_t d_k = q.cols() / map.heads, d_v = v.cols() / map.heads;
    for (int64_t head = 0; head < map.heads; ++head) {
      const size_t begin = static_cast<size_t>(head) * n_q * n_k;
      for (size_t i = 0; i < n_q; ++i) {
        std::vector<double> mixed(static_cast<size_t>(d_v), 0);
        for (size_t j = 0; j < n_k; ++j) {
          const auto row = static_cast<int64_t>(i), key = static_cast<int64_t>(j);
          double product = 0;
          for (int64_t c = 0; c < d_k; ++c)
            product +=
                static_cast<double>(q(row, head * d_k + c)) * static_cast<double>(k(key, head * d_k + c));
          const float score = map.scores.data()[begin + i * n_k + j];
          if (!std::isinf(score)) {
            EXPECT_NEAR(score, product / std::sqrt(static_cast<double>(d_k)), 1e-4);
          }
          for (int64_t c = 0; c < d_v; ++c)
            mixed[static_cast<size_t>(c)] += static_cast<double>(map.weights.data()[begin + i * n_k + j]) *
                                             static_cast<double>(v(key, head * d_v + c));
        }
        for (int64_t c = 0; c < d_v; ++c)
          EXPECT_NEAR(concat(static_cast<int64_t>(i), head * d_v + c), mixed[static_cast<size_t>(c)], 1e-4);
      }
    }
  }
}

TEST_F(Attended, JsonHasTheDocumentedForm) {
  const AttendedPair pair = attended(kLine);
  const std::vector<std::string> tensors{"heads", "scores", "q"};
  std::string written;
  size_t largest = 0;
  io::JsonWriter writer([&](std::string_view text) {
    written += text;
    largest = std::max(largest, text.size());
  });
  check_tensors(pair, tensors);
  writer.begin_object();
  write_json(pair, tensors, writer);
  writer.end_object();
  writer.flush();
  EXPECT_LT(largest, written.size());  // handed on as it comes
  const auto json = nlohmann::ordered_json::parse(written);
  const size_t n = pair.target.ids.size(), m = pair.source.ids.size();
  EXPECT_EQ(json["source"]["pieces"].size(), m);
  EXPECT_EQ(json["source"]["word_of_piece"].size(), m);
  EXPECT_TRUE(json["source"]["word_of_piece"].back().is_null());
  EXPECT_EQ(json["target"]["is_end_symbol"].back(), true);
  EXPECT_EQ(json["decoder_input"].size(), n);
  EXPECT_EQ(json["decoder_input"][0], "<pad>");
  const auto& cross = json["attention"]["cross"];
  const models::Model& model = translator_->model();
  ASSERT_EQ(cross["weights"].size(), static_cast<size_t>(model.attention_layers(AttentionKind::cross)));
  EXPECT_EQ(cross["weights"][0][0].size(), n);
  EXPECT_EQ(cross["weights"][0][0][0].size(), m);
  EXPECT_EQ(cross["tensors"][0]["heads"]["shape"][1], n);
  EXPECT_TRUE(json["attention"]["decoder"]["tensors"][0]["scores"]["values"][0][0][1].is_null());  // hidden
  EXPECT_THROW(check_tensors(pair, std::vector<std::string>{"Q"}), UsageError);
}

TEST_F(Attended, BadInputIsOneSentence) {
  const auto message = [&](const std::string& line, const std::optional<std::string>& target) -> std::string {
    try {
      attended(line, target);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("", std::nullopt).find("empty"), std::string::npos);
  EXPECT_NE(message(" \u3000", std::nullopt).find("empty"), std::string::npos);
  EXPECT_NE(message(kLine, " ").find("empty"), std::string::npos);
  EXPECT_NE(message(kLine, "A 猫 .").find("猫"), std::string::npos);
  // Longer than anybody looks at: each side has its end.
  const auto letters = [](int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += "A ";
    return text;
  };
  EXPECT_NE(message(letters(kMostSourcePieces + 1), std::nullopt).find("at most 512"), std::string::npos);
  EXPECT_NE(message(kLine, letters(kMostTargetPieces + 1)).find("at most 2048"), std::string::npos);
}

TEST_F(Attended, ShortAndLongSentencesWork) {
  EXPECT_EQ(attended("A").source.words.texts.size(), 1u);
  std::string line;
  for (int i = 0; i < 500; ++i) line += "cat ";
  const AttendedPair pair = attended(line, "A dog.");
  EXPECT_GE(pair.source.ids.size(), 501u);
  EXPECT_EQ(pair.source.words.texts.size(), 500u);
}

// A cell of two words is the sum over the pieces of the key, averaged over those of the query.
void expect_merged(const AttendedPair& pair, const AttentionView& pieces, const AttentionView& words) {
  const auto& query_of = pair.target.words.word_of;
  const auto& key_of = pair.source.words.word_of;
  for (size_t query = 0; query < pair.target.words.texts.size(); ++query) {
    for (size_t key = 0; key < pair.source.words.texts.size(); ++key) {
      double sum = 0, rows = 0;
      for (size_t i = 0; i < query_of.size(); ++i) {
        if (query_of[i] != static_cast<int32_t>(query)) continue;
        ++rows;
        for (size_t j = 0; j < key_of.size(); ++j) {
          if (key_of[j] == static_cast<int32_t>(key))
            sum += static_cast<double>(pieces.values[i * pieces.columns.size() + j]);
        }
      }
      EXPECT_NEAR(words.values[query * words.columns.size() + key], sum / rows, 1e-6);
    }
  }
  EXPECT_EQ(std::vector(words.columns.begin(), words.columns.begin() + std::ssize(pair.source.words.texts)),
            pair.source.words.texts);
}

TEST_F(Attended, ViewsMergePadAndHide) {
  const AttendedPair pair = attended("Nobody knows far away.", "One hill, two cats.");
  ASSERT_LT(pair.source.words.texts.size() + 1, pair.source.ids.size());  // some word has several pieces
  for (const AttentionMap& map : pair.maps) {
    for (const bool mean : {false, true}) {
      ViewOptions options;
      if (!mean) options.head = map.heads - 1;
      const AttentionView pieces = view(pair, {&map, 1}, options);
      const auto [n_q, n_k] = shape_of(pair, map);
      ASSERT_EQ(pieces.rows.size(), n_q);
      ASSERT_EQ(pieces.columns.size(), n_k);
      options.merge = Merge::words;
      options.pad_to = static_cast<int64_t>(n_k) + 2;
      const AttentionView words = view(pair, {&map, 1}, options);
      EXPECT_EQ(words.columns.size(), n_k + 2);
      // A row and a column for each word, and one for the end or the start symbol.
      const Side& keys = map.kind == AttentionKind::decoder ? pair.target : pair.source;
      const Side& queries = map.kind == AttentionKind::encoder ? pair.source : pair.target;
      EXPECT_EQ(std::ranges::count(words.columns, "<pad>"),
                static_cast<int64_t>(n_k + 2 - keys.words.texts.size() - 1));
      EXPECT_EQ(words.rows.size(), queries.words.texts.size() + 1);
      if (map.kind == AttentionKind::cross) expect_merged(pair, pieces, words);
      for (const AttentionView& each : {pieces, words}) {
        const size_t width = each.columns.size();
        for (size_t row = 0; row < each.rows.size(); ++row) {
          double sum = 0;
          for (size_t column = 0; column < width; ++column) {
            sum += static_cast<double>(each.values[row * width + column]);
            const bool future = map.kind == AttentionKind::decoder && column > row;
            const bool padded = each.columns[column] == "<pad>" && column >= width - 2 && &each == &words;
            if (future || padded) {
              EXPECT_TRUE(each.hidden[row * width + column]);
            }
            if (each.hidden[row * width + column]) {
              EXPECT_EQ(each.values[row * width + column], 0);
            }
          }
          EXPECT_NEAR(sum, 1, 1e-5);
        }
      }
    }
    ViewOptions absent;
    absent.head = map.heads;
    EXPECT_THROW(view(pair, {&map, 1}, absent), UsageError);
    ViewOptions narrow;
    narrow.pad_to = 1;
    EXPECT_THROW(view(pair, {&map, 1}, narrow), UsageError);
  }
}

// The same pair with the layers of one kind.
AttendedPair only(AttendedPair pair, AttentionKind kind) {
  std::erase_if(pair.maps, [kind](const AttentionMap& map) { return map.kind != kind; });
  return pair;
}

TEST_F(Attended, AViewOfSeveralLayersIsTheirMean) {
  const AttendedPair pair = only(attended(kLine), AttentionKind::encoder);
  ASSERT_EQ(pair.maps.size(), 2u);
  for (const std::optional<int64_t> head : {std::optional<int64_t>(), std::optional<int64_t>(1)}) {
    ViewOptions options;
    options.head = head;
    const AttentionView mean = view(pair, pair.maps, options),
                        first = view(pair, {&pair.maps[0], 1}, options),
                        second = view(pair, {&pair.maps[1], 1}, options);
    ASSERT_EQ(mean.values.size(), first.values.size());
    for (size_t i = 0; i < mean.values.size(); ++i)
      EXPECT_FLOAT_EQ(mean.values[i], (first.values[i] + second.values[i]) / 2);
    EXPECT_NE(first.values, second.values);
    EXPECT_EQ(mean.title, std::string("encoder self-attention, mean of 2 layers, ") +
                              (head ? "head 1" : "mean of 2 heads"));
    EXPECT_EQ(second.title,
              std::string("encoder self-attention, layer 1, ") + (head ? "head 1" : "mean of 2 heads"));
  }
  EXPECT_THROW(view(pair, {}, {}), Error);
}

TEST_F(Attended, PicturesShowLayersAndHeadsBesideEachOther) {
  if (!pictures_available()) GTEST_SKIP() << "this build has no pictures (GLOSS_PICTURES=OFF)";
  const AttendedPair pair = only(attended(kLine), AttentionKind::cross);
  const auto drawn = [&](bool each_layer, bool each_head, std::optional<int64_t> head) {
    PictureOptions options;
    options.each_layer = each_layer;
    options.each_head = each_head;
    options.view.head = head;
    return draw_attention(pair, PictureFormat::svg, options).bytes;
  };
  // What is drawn by hand: the layers of each row of the grid, and the head of each column.
  using Rows = std::vector<std::pair<std::string, std::span<const AttentionMap>>>;
  using Columns = std::vector<std::pair<std::string, std::optional<int64_t>>>;
  const auto wanted = [&](const std::string& title, const Rows& rows, const Columns& columns) {
    HeatMapGrid grid;
    grid.title = title;
    grid.grid_rows.clear();
    grid.grid_columns.clear();
    for (const auto& [name, maps] : rows) {
      grid.grid_rows.push_back(name);
      for (const auto& [text, head] : columns) {
        ViewOptions options;
        options.head = head;
        const AttentionView one = view(pair, maps, options);
        grid.row_labels = one.rows;
        grid.column_labels = one.columns;
        grid.maps.push_back({one.values, one.hidden});
      }
    }
    for (const auto& [text, head] : columns) grid.grid_columns.push_back(text);
    return draw(grid, PictureFormat::svg).bytes;
  };
  const std::span<const AttentionMap> all = pair.maps;
  const Rows both{{"layer 0", all.subspan(0, 1)}, {"layer 1", all.subspan(1, 1)}};
  const std::string name = "cross-attention";
  EXPECT_EQ(drawn(true, true, std::nullopt), wanted(name, both, {{"head 0", 0}, {"head 1", 1}}));
  EXPECT_EQ(drawn(true, false, std::nullopt), wanted(name, both, {{"mean of 2 heads", std::nullopt}}));
  EXPECT_EQ(drawn(true, false, 1), wanted(name, both, {{"head 1", 1}}));
  EXPECT_EQ(drawn(false, true, std::nullopt),
            wanted(name, {{"mean of 2 layers", all}}, {{"head 0", 0}, {"head 1", 1}}));
  EXPECT_EQ(drawn(false, false, std::nullopt),
            wanted(name + ", mean of 2 layers, mean of 2 heads", {{"", all}}, {{"", std::nullopt}}));
  EXPECT_NE(drawn(true, false, std::nullopt), drawn(true, false, 1));
}

}  // namespace
}  // namespace gloss::inspect
