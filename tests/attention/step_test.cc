// One token at a time through the cache against whole sequences at once; keys and values as they are made,
// and rounded to bfloat16.
#include <bit>
#include <map>
#include <set>
#include <type_traits>

#include "attention/support.h"
#include "gloss/attention/mask.h"
#include "gloss/nn/linear.h"
#include "support/isas.h"

namespace gloss::attention {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::random_tensor;
using tests::same_bits;
using Widths = KvCache<float>::Widths;
using Extension = KvCache<float>::Extension;

constexpr int64_t kModel = 12;

Tensor<float> stack(Arena& arena, const std::vector<Tensor<float>>& rows) {
  const Tensor<float> all(arena, {static_cast<int64_t>(rows.size()), kModel});
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(rows[i].data(), kModel, all.row(static_cast<int64_t>(i)));
  return all;
}

// Outputs are of the order of 1, and within 1e-5 of each other.
void expect_near(const float* got, const float* want) {
  for (int64_t c = 0; c < kModel; ++c) EXPECT_NEAR(got[c], want[c], 1e-5F);
}

// Sentences translated together: each hypothesis knows the inputs of all its steps.
struct Sentence {
  Tensor<float> memory;
  std::vector<std::vector<Tensor<float>>> hypotheses{{}};
};

template <class Stored>
struct Decoder {
  Decoder(const MultiHeadShape& shape, int threads)
      : context(threads),
        self(context, shape, Stacking::query_key_value),
        cross(context, shape, Stacking::key_value, false, 8),
        cache(context.arena, 2, self.attention.widths(), cross.attention.widths()) {}

  void open(int slot, int64_t source, uint64_t of) {
    Tape<float> tape(context);
    Sentence& s = sentences[slot];
    s = {random_tensor<float>(context.arena, {source, kModel}, of)};
    cache.open(slot);
    const Tensor<float> rows = cross.attention.project_memory(tape, Var<float>(s.memory));
    for (int64_t layer = 0; layer < 2; ++layer) cache.set_memory(slot, layer, rows.data(), source);
  }
  void close(int slot) {
    cache.close(slot);
    sentences.erase(slot);
  }

  // Extends hypotheses `parents` of each slot by fresh random inputs; returns the outputs of self- and
  // cross-attention, in the second layer.
  std::pair<Tensor<float>, Tensor<float>> step(const std::vector<std::pair<int, std::vector<int>>>& parents) {
    std::vector<Extension> rows;
    std::vector<Tensor<float>> inputs;
    for (const auto& [slot, of] : parents) {
      Sentence& s = sentences.at(slot);
      std::vector<std::vector<Tensor<float>>> next;
      for (const int parent : of) {
        rows.push_back({slot, parent});
        next.push_back(s.hypotheses.at(static_cast<size_t>(parent)));
        inputs.push_back(random_tensor<float>(context.arena, {1, kModel}, ++seed));
        next.back().push_back(inputs.back());
      }
      s.hypotheses = next;
    }
    Tape<float> tape(context);
    const Var<float> x(stack(context.arena, inputs));
    cache.begin_step(rows);
    // The first layer sees other numbers, which must not mix with the second's.
    self.attention.self_step(tape, Var<float>(random_tensor<float>(context.arena, x.shape(), 999)), cache, 0);
    const Tensor<float> a = self.attention.self_step(tape, x, cache, 1).value();
    return {a, cross.attention.memory_step(tape, x, cache, 1).value()};
  }

  // The same from whole histories, without the cache: what training computes where nothing is rounded, and to
  // the bit what rounds where the cache does.
  void expect_equal(const std::vector<int>& slots, const std::pair<Tensor<float>, Tensor<float>>& got) {
    int64_t row = 0;
    for (const int slot : slots) {
      const Sentence& s = sentences.at(slot);
      for (const auto& history : s.hypotheses) {
        Tape<float> tape(context);
        const auto n = static_cast<int64_t>(history.size());
        const Ragged<Var<float>> x{Var<float>(stack(context.arena, history)), lengths({n})},
            memory{Var<float>(s.memory), lengths({s.memory.rows()})};
        if constexpr (std::is_same_v<Stored, float>) {
          expect_near(got.first.row(row),
                      self.attention(tape, x, Mask{Causal::yes, {}}).output.value().row(n - 1));
          expect_near(got.second.row(row), cross.attention(tape, x, memory).output.value().row(n - 1));
        }
        const auto expect_bits = [&](const Tensor<float>& step, const Var<float>& whole) {
          EXPECT_TRUE(same_bits(step.slice_rows(row, 1), whole.value().slice_rows(n - 1, 1)));
        };
        expect_bits(got.first, self.attention.self_whole<Stored>(tape, x));
        expect_bits(got.second, cross.attention.memory_whole<Stored>(tape, x, memory));
        EXPECT_EQ(cache.positions()[static_cast<size_t>(row)], n - 1);
        ++row;
      }
    }
    EXPECT_EQ(row, got.first.rows());
  }

  Context context;
  Module<float> self, cross;
  KvCache<Stored> cache;
  std::map<int, Sentence> sentences;
  uint64_t seed = 1000;
};

const std::vector<MultiHeadShape> kShapes{
    {.d_model = kModel, .heads = 3},
    {.d_model = kModel, .heads = 2, .d_k = 5, .d_v = 17},
    {.d_model = kModel, .heads = 1, .d_k = 33, .d_v = 1, .bias = false},
};

template <class Stored>
class CachedSteps : public ::testing::Test {};
using StoredNumbers = ::testing::Types<float, kernels::Bfloat16>;
TYPED_TEST_SUITE(CachedSteps, StoredNumbers);

TYPED_TEST(CachedSteps, EqualWholeSequences) {
  tests::on_every_isa([](kernels::Isa) {
    for (const MultiHeadShape& shape : kShapes) {
      Decoder<TypeParam> decoder(shape, 2);
      decoder.open(0, 7, 1);
      for (int step = 0; step < 40; ++step) {  // past the first capacity, twice
        const auto got = decoder.step({{0, {0}}});
        decoder.expect_equal({0}, got);
      }
      EXPECT_EQ(decoder.cache.rows_projected(), 40);
    }
  });
}

TYPED_TEST(CachedSteps, FollowBeamsThroughReordersAndSlotsThatComeAndGo) {
  for (const MultiHeadShape& shape : kShapes) {
    Decoder<TypeParam> decoder(shape, 2);
    const RandomKey key(3);
    uint64_t draws = 0;
    const auto below = [&](size_t n) { return static_cast<int>(key.below(draws++, n)); };
    for (int slot = 0; slot < 3; ++slot) decoder.open(slot, 1 + 3 * slot, static_cast<uint64_t>(slot));
    for (int step = 0; step < 30; ++step) {
      if (step == 7) decoder.close(1);
      if (step == 9) decoder.open(1, 5, 77);    // another sentence in the same place
      if (step == 12) decoder.open(5, 40, 78);  // a far one
      if (step == 20) decoder.close(0);
      std::vector<std::pair<int, std::vector<int>>> parents;
      std::vector<int> slots;
      for (const auto& [slot, sentence] : decoder.sentences) {
        if (below(8) == 0) continue;  // not in this step
        std::vector<int> of;
        // One to four hypotheses, twice the same parent and orphans included.
        for (int i = 0, n = 1 + below(4); i < n; ++i) of.push_back(below(sentence.hypotheses.size()));
        parents.emplace_back(slot, of);
        slots.push_back(slot);
      }
      if (below(2)) {
        std::reverse(parents.begin(), parents.end());
        std::reverse(slots.begin(), slots.end());
      }
      const auto got = decoder.step(parents);
      decoder.expect_equal(slots, got);
    }
  }
}

// The same hypothesis alone and in company, with another number of threads: the same bits.
TYPED_TEST(CachedSteps, DoNotDependOnCompany) {
  Decoder<TypeParam> alone(kShapes[0], 1), together(kShapes[0], 3);
  alone.open(0, 6, 1);
  together.open(4, 9, 2);
  together.open(0, 6, 1);
  for (int step = 0; step < 20; ++step) {
    const uint64_t seed = alone.seed;
    const auto one = alone.step({{0, {0}}});
    together.seed = seed;
    const auto many = together.step({{0, {0}}, {4, {0, 0}}});
    EXPECT_TRUE(same_bits(one.first, many.first.slice_rows(0, 1)));
    EXPECT_TRUE(same_bits(one.second, many.second.slice_rows(0, 1)));
  }
}

// Attention that rounds, put together from public parts: training's own layer whose keys and values are
// rounded where they are projected.
TEST(RoundedSteps, AreAttentionOverRoundedKeysAndValues) {
  for (const MultiHeadShape& shape : kShapes) {
    Context context(1);
    const Module<float> self(context, shape, Stacking::query_key_value);
    const Ragged<Var<float>> x{Var<float>(random_tensor<float>(context.arena, {25, kModel}, 1)),
                               lengths({7, 1, 17})};
    Tape<float> tape(context);
    const Request all{.tensors = true};
    const auto whole = self.attention(tape, x, Mask{Causal::yes, {}}, 0, all);
    const MultiHeadShape& s = self.attention.shape();
    std::vector<Var<float>> projected;
    for (const auto& [name, numbers] : whole.tensors) {
      if (name == "concat") continue;
      projected.emplace_back(numbers);
      if (name == "q") continue;
      for (float& number : numbers.values()) {
        kernels::Bfloat16 kept;
        kernels::store_numbers(&number, 1, &kept);
        number = std::bit_cast<float>(static_cast<uint32_t>(kept.bits) << 16);
      }
    }
    const auto looked = scaled_dot_product_attention(
        tape, {projected.at(0), 0}, x.offsets, {projected.at(1), 0}, {projected.at(2), 0}, x.offsets,
        {s.heads, s.d_k, s.d_v}, visible_keys(Mask{Causal::yes, {}}, x.offsets, x.offsets));
    const auto named = [&](const std::string& name) {
      Tensor<float> found;
      self.parameters.each_part([&](const std::string& part, const Tensor<float>& value) {
        if (part == name) found = value;
      });
      return found ? Var<float>(found) : Var<float>();
    };
    const Var<float> want = nn::linear(tape, looked.output, named("out_proj.weight"), named("out_proj.bias"));
    const Tensor<float> got = self.attention.self_whole<kernels::Bfloat16>(tape, x).value();
    EXPECT_TRUE(tests::close(got, want.value(), 1e-5));
    EXPECT_FALSE(tests::close(got, whole.output.value(), 1e-5));  // it does round
    EXPECT_TRUE(tests::close(got, whole.output.value(), 2e-2));
    EXPECT_TRUE(tests::close(self.attention.self_whole<float>(tape, x).value(), whole.output.value(), 1e-5));
  }
}

// Payload: N x 4 (2 in bfloat16) x (2 d x rows + 2 m d x batch) bytes, with one row a sentence at the first
// token and `beam` at each one after it. The arena counts what it is asked for, payload and spare capacity. A
// whole search is looked at in tests/decode/cache_memory_test.cc.
template <class Stored>
class KvCacheBytes : public ::testing::Test {};
TYPED_TEST_SUITE(KvCacheBytes, StoredNumbers);

TYPED_TEST(KvCacheBytes, AreTheFormulaToTheByteAndTheArenaConfirmsIt) {
  constexpr int64_t element = std::is_same_v<TypeParam, float> ? 4 : 2;
  const int64_t layers = 3, d = 64, batch = 4, beam = 5, n = 50, m = 23, rows_a_slot = 1 + (n - 1) * beam;
  Context context;
  const auto rows = random_tensor<float>(context.arena, {m, 2 * d}, 1),
             step = random_tensor<float>(context.arena, {batch * beam, 2 * d}, 2);
  const size_t before = context.arena.counters().bytes_requested;
  const auto held = [&] { return static_cast<int64_t>(context.arena.counters().bytes_requested - before); };
  {
    KvCache<TypeParam> cache(context.arena, layers, {d, d}, {d, d});
    for (int slot = 0; slot < batch; ++slot) {
      cache.open(slot);
      for (int64_t layer = 0; layer < layers; ++layer) cache.set_memory(slot, layer, rows.data(), m);
    }
    for (int64_t t = 0; t < n; ++t) {
      std::vector<Extension> extensions;
      for (int slot = 0; slot < batch; ++slot) {
        for (int b = 0; b < (t == 0 ? 1 : beam); ++b) extensions.push_back({slot, t < 2 ? 0 : b});
      }
      cache.begin_step(extensions);
      const auto made = step.slice_rows(0, static_cast<int64_t>(extensions.size()));
      for (int64_t layer = 0; layer < layers; ++layer) cache.append(layer, kernels::matrix(made));
    }
    const KvCacheSize size = cache.size();
    EXPECT_EQ(size.self_bytes, layers * element * 2 * d * batch * rows_a_slot);
    EXPECT_EQ(size.memory_bytes, layers * element * 2 * m * d * batch);
    EXPECT_EQ(size.spare_bytes, layers * element * 2 * d * batch * (256 - rows_a_slot));
    EXPECT_EQ(size.table_bytes, n * beam * batch * 4);
    EXPECT_EQ(held(), size.self_bytes + size.memory_bytes + size.spare_bytes);
    cache.close(2);
    EXPECT_EQ(cache.size().memory_bytes, layers * element * 2 * m * d * (batch - 1));
    EXPECT_EQ(cache.size().self_bytes, layers * element * 2 * d * (batch - 1) * rows_a_slot);
    EXPECT_EQ(held(), (size.self_bytes + size.memory_bytes + size.spare_bytes) / batch * (batch - 1));
  }
  EXPECT_EQ(held(), 0);
}

TEST(KvCacheSize, AReorderMovesNoKeysOrValues) {
  Context context;
  KvCache<float> cache(context.arena, 1, {4, 4}, {4, 4});
  cache.open(0);
  const auto row = random_tensor<float>(context.arena, {2, 8}, 1);
  const auto step = [&](int a, int b) {
    const std::vector<Extension> rows{{0, a}, {0, b}};
    cache.begin_step(rows);
    cache.append(0, kernels::matrix(row));
  };
  step(0, 0);
  const float* first = cache.self_rows(0)[0].pages[0];
  const std::vector<float> stored(first, first + 16);
  step(1, 0);
  step(1, 1);
  EXPECT_EQ(cache.self_rows(0)[0].pages[0], first);
  EXPECT_TRUE(same_bits(stored, std::vector<float>(first, first + 16)));
  // Row 0 of the third step came from row 1 of the second, which came from row 0 of the first.
  const kernels::CachedRows<float> looks = cache.self_rows(0)[0];
  EXPECT_THAT(std::vector<int32_t>(looks.index, looks.index + looks.count), ::testing::ElementsAre(0, 3, 4));
}

// Whatever hypotheses live on, each finds the rows of its own past in their order, in every layer, though
// dead rows give way to new ones.
TEST(KvCacheSize, DeadRowsGiveWayAndLiveOnesAreFoundAgain) {
  constexpr int64_t kBeam = 4, kSteps = 120, kRow = 6, kSlots = 2;
  for (const uint64_t seed : {1, 2, 3}) {
    for (const bool all_from_one : {false, true}) {
      Context context;
      KvCache<float> cache(context.arena, 2, {3, 3}, {3, 3});
      // What a hypothesis has read: a number for each of its tokens, which its row is filled with.
      std::vector<std::vector<std::vector<float>>> past(kSlots, {{}});
      for (int slot = 0; slot < kSlots; ++slot) cache.open(slot);
      float token = 0;
      for (int64_t t = 0; t < kSteps; ++t) {
        std::vector<Extension> extensions;
        std::vector<float> rows;
        for (int slot = 0; slot < kSlots; ++slot) {
          std::vector<std::vector<float>> next;
          for (int64_t b = 0; b < (t == 0 ? 1 : kBeam); ++b) {
            const auto index = static_cast<uint64_t>((t * kSlots + slot) * kBeam + b);
            const auto parents = static_cast<uint64_t>(past[static_cast<size_t>(slot)].size());
            const auto parent = all_from_one ? 0 : RandomKey(seed).below(index, parents);
            extensions.push_back({slot, static_cast<int>(parent)});
            next.push_back(past[static_cast<size_t>(slot)][parent]);
            next.back().push_back(++token);
            rows.insert(rows.end(), kRow, token);
          }
          past[static_cast<size_t>(slot)] = std::move(next);
        }
        cache.begin_step(extensions);
        const auto count = static_cast<int64_t>(extensions.size());
        for (int64_t layer = 0; layer < 2; ++layer) {
          for (float& x : rows) x = -x;  // layers differ
          cache.append(layer, {rows.data(), count, kRow, kRow});
        }
        for (int64_t layer = 0; layer < 2; ++layer) {
          const auto looks = cache.self_rows(layer);
          size_t row = 0;
          for (const auto& hypotheses : past) {
            for (const std::vector<float>& tokens : hypotheses) {
              const kernels::CachedRows<float>& found = looks[row++];
              ASSERT_EQ(found.count, static_cast<int64_t>(tokens.size()));
              for (size_t i = 0; i < tokens.size(); ++i) {
                const int64_t r = found.index[i];
                const float* at = found.pages[r / kernels::kCachePage] + r % kernels::kCachePage * kRow;
                const float wanted = layer == 0 ? -tokens[i] : tokens[i];
                ASSERT_EQ(at[0], wanted) << "step " << t << ", token " << i;
                ASSERT_EQ(at[found.value_column], wanted);
              }
            }
          }
        }
        // Of rows that died a third at most is kept, but for those of the last page or two.
        std::set<float> alive;
        for (const auto& hypotheses : past) {
          for (const auto& tokens : hypotheses) alive.insert(tokens.begin(), tokens.end());
        }
        const KvCacheSize size = cache.size();
        const auto bytes = static_cast<int64_t>(2 * kRow * sizeof(float));
        EXPECT_LE(size.self_bytes / bytes,
                  static_cast<int64_t>(alive.size()) * 3 / 2 + kSlots * 2 * kernels::kCachePage);
        EXPECT_LT(size.spare_bytes / bytes, kSlots * 2 * kernels::kCachePage);
      }
    }
  }
}

TEST(KvCacheErrors, AreCaught) {
  Context context;
  KvCache<float> cache(context.arena, 1, {4, 4}, {4, 4});
  const auto begin = [&](const std::vector<Extension>& rows) {
    return message_of([&] { cache.begin_step(rows); });
  };
  EXPECT_THAT(begin({{0, 0}}), HasSubstr("slot 0"));
  EXPECT_THAT(message_of([&] { cache.close(3); }), HasSubstr("slot 3"));
  EXPECT_THAT(message_of([&] { cache.open(-1); }), HasSubstr("-1"));
  cache.open(0);
  cache.open(1);
  EXPECT_THAT(message_of([&] { cache.open(0); }), HasSubstr("taken"));
  EXPECT_THAT(begin({{0, 1}}), HasSubstr("there are 1"));
  EXPECT_NE(begin({{0, -1}}), "");
  EXPECT_THAT(begin({{0, 0}, {1, 0}, {0, 0}}), HasSubstr("stand together"));

  cache.close(0);
  cache.open(0);
  EXPECT_EQ(begin({{0, 0}}), "");
  EXPECT_THAT(message_of([&] { cache.memory_rows(0); }), HasSubstr("no source"));
  const auto rows = random_tensor<float>(context.arena, {2, 8}, 1);
  EXPECT_THAT(message_of([&] { cache.append(0, kernels::matrix(rows)); }),
              AllOf(HasSubstr("2 rows"), HasSubstr("1 rows")));

  Module<float> apart(context, {.d_model = 8, .heads = 2}, Stacking::key_value);
  Tape<float> tape(context);
  EXPECT_THAT(message_of([&] { apart.attention.self_step(tape, Var<float>(rows), cache, 0); }),
              HasSubstr("one parameter"));
  Module<float> self(context, {.d_model = 8, .heads = 2}, Stacking::query_key_value);
  EXPECT_THAT(message_of([&] { self.attention.project_memory(tape, Var<float>(rows)); }),
              HasSubstr("one parameter"));
}

}  // namespace
}  // namespace gloss::attention
