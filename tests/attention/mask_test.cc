// Masks by name, boolean masks at the border, and what attention refuses.
#include <cmath>

#include "attention/support.h"
#include "gloss/kernels/attention_reference.h"

namespace gloss::attention {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::close;
using tests::random_tensor;

TEST(VisibleKeys, CountLeadingKeys) {
  const Mask none, causal{Causal::yes, {}};
  EXPECT_THAT(visible_keys(none, lengths({2, 1}), lengths({5, 0})), IsEmpty());
  EXPECT_THAT(visible_keys(causal, lengths({3, 0, 2}), lengths({3, 0, 2})), ElementsAre(1, 2, 3, 1, 2));
  // A cached step of one query behind seven keys sees them all and itself; a chunk of three likewise.
  EXPECT_THAT(visible_keys({Causal::yes, 7}, lengths({1}), lengths({8})), ElementsAre(8));
  EXPECT_THAT(visible_keys({Causal::yes, 5}, lengths({3}), lengths({8})), ElementsAre(6, 7, 8));
  // Never more than there are.
  EXPECT_THAT(visible_keys({Causal::yes, 5}, lengths({3, 1}), lengths({7, 2})), ElementsAre(6, 7, 7, 2));
}

TEST(VisibleKeys, CountAsPaddedPositionsStood) {
  // Keys at positions 1, 3 and 4 of 5; queries at all positions, then at the last two.
  const std::vector<uint8_t> keep{0, 1, 0, 1, 1};
  const Padding keys(keep, 1, 5, BooleanMask::keep);
  EXPECT_THAT(keys.visible_keys({Causal::yes, {}}, Padding(std::vector<int64_t>{5}, 5)),
              ElementsAre(0, 1, 1, 2, 3));
  EXPECT_THAT(keys.visible_keys({Causal::yes, 3}, Padding(std::vector<int64_t>{2}, 2)), ElementsAre(2, 3));
  EXPECT_THAT(keys.visible_keys({Causal::yes, {}}, keys), ElementsAre(1, 2, 3));
}

// A boolean mask at the border, with holes and padding on the left, against dense masked attention.
TEST(AttentionProperty, BooleanMasksWithHolesEqualDenseAttention) {
  Context context;
  Arena& arena = context.arena;
  const int64_t batch = 4, n = 7, d = 5;
  const std::vector<uint8_t> keep{1, 1, 1, 1, 0, 0, 0,   // right padding
                                  0, 0, 0, 1, 1, 1, 1,   // left padding
                                  0, 1, 0, 1, 1, 0, 1,   // holes
                                  0, 0, 0, 0, 0, 0, 0};  // nothing
  std::vector<uint8_t> hide(keep);
  for (uint8_t& x : hide) x = x ? 0 : 1;
  const auto q = random_tensor<double>(arena, {batch, n, d}, 1),
             k = random_tensor<double>(arena, {batch, n, d}, 2),
             v = random_tensor<double>(arena, {batch, n, d}, 3);
  // NaN at hidden positions must not be read.
  for (int64_t i = 0; i < batch * n; ++i) {
    if (keep[static_cast<size_t>(i)]) continue;
    std::fill_n(k.row(i), d, std::nan(""));
    std::fill_n(v.row(i), d, std::nan(""));
  }
  const Padding all(std::vector<int64_t>(batch, n), n);
  for (const Causal causal : {Causal::no, Causal::yes}) {
    for (const BooleanMask meaning : {BooleanMask::keep, BooleanMask::hide}) {
      const Padding live(meaning == BooleanMask::keep ? keep : hide, batch, n, meaning);
      EXPECT_EQ(live.offsets(), lengths({4, 4, 4, 0}));
      Tape<double> tape(context);
      const auto r = scaled_dot_product_attention<double>(
          tape, {Var<double>(q.reshaped({batch * n, d})), 0}, all.offsets(),
          {Var<double>(live.compact(arena, k)), 0}, {Var<double>(live.compact(arena, v)), 0}, live.offsets(),
          {1, d, d}, live.visible_keys({causal, {}}, all));
      for (int64_t b = 0; b < batch; ++b) {
        kernels::reference::AttentionHead head;
        head.query = kernels::matrix(q.slice_rows(b * n, n));
        head.key = kernels::matrix(k.slice_rows(b * n, n));
        head.value = kernels::matrix(v.slice_rows(b * n, n));
        head.scale = 1 / std::sqrt(5.0);
        head.sees = [&](int64_t i, int64_t j) {
          return keep[static_cast<size_t>(b * n + j)] && (causal == Causal::no || j <= i);
        };
        EXPECT_TRUE(
            close(r.output.value().slice_rows(b * n, n), kernels::reference::attention(head).output, 1e-9));
      }
    }
  }
  const Padding live(keep, batch, n, BooleanMask::keep);
  const Tensor<double> back = live.expand(arena, live.compact(arena, q));
  for (int64_t i = 0; i < batch * n; ++i) {
    for (int64_t c = 0; c < d; ++c) EXPECT_EQ(back.row(i)[c], keep[static_cast<size_t>(i)] ? q.row(i)[c] : 0);
  }
}

TEST(AttentionErrors, NameTheNumbers) {
  Context context;
  Arena& arena = context.arena;
  Tape<float> tape(context);
  const auto rows = [&](int64_t n, int64_t d) { return Var<float>(random_tensor<float>(arena, {n, d}, 1)); };
  using Rows = Ragged<Var<float>>;
  const auto attend = [&](const Rows& q, const Rows& k, const Rows& v, const Mask& mask = {}) {
    return message_of([&] { scaled_dot_product_attention<float>(tape, q, k, v, mask); });
  };
  const Rows q{rows(3, 4), lengths({3})}, k{rows(5, 4), lengths({5})};
  EXPECT_EQ(attend(q, k, k), "");
  EXPECT_THAT(attend(q, k, {rows(6, 4), lengths({6})}),
              AllOf(HasSubstr("lengths differ"), HasSubstr("5"), HasSubstr("6")));
  EXPECT_THAT(attend({rows(3, 7), lengths({3})}, k, k),
              AllOf(HasSubstr("d_k differs"), HasSubstr("7"), HasSubstr("4")));
  EXPECT_THAT(attend(q, k, k, {Causal::yes, {}}),
              AllOf(HasSubstr("3 queries"), HasSubstr("5 keys"), HasSubstr("query offset")));
  EXPECT_EQ(attend(q, k, k, {Causal::yes, 2}), "");
  EXPECT_THAT(attend(q, k, k, {Causal::yes, -1}), HasSubstr("-1"));
  EXPECT_THAT(attend(q, k, k, {Causal::no, 2}), AllOf(HasSubstr("offset of 2"), HasSubstr("Causal::yes")));
  EXPECT_THAT(attend(q, {rows(5, 4), lengths({2, 3})}, {rows(5, 4), lengths({2, 3})}),
              AllOf(HasSubstr("1 sequences"), HasSubstr("2 sequences")));
  EXPECT_THAT(attend({rows(4, 4), lengths({3})}, k, k), HasSubstr("4 query"));

  ParameterSet<float> parameters;
  EXPECT_THAT(message_of([&] {
                MultiHeadAttention<float>(parameters, "", {.d_model = 10, .heads = 4}, Stacking::none);
              }),
              AllOf(HasSubstr("10"), HasSubstr("4 heads"), HasSubstr("divisible")));
  EXPECT_EQ(message_of([&] {
              MultiHeadAttention<float>(parameters, "", {.d_model = 10, .heads = 4, .d_k = 3, .d_v = 2},
                                        Stacking::none);
            }),
            "");
  EXPECT_THAT(message_of([&] {
                MultiHeadAttention<float>(parameters, "", {.d_model = 8, .heads = 0}, Stacking::none);
              }),
              HasSubstr("heads above 0"));
  EXPECT_THAT(message_of([&] {
                MultiHeadAttention<float>(parameters, "", {.d_model = 8, .heads = 2, .d_query = 6},
                                          Stacking::query_key_value);
              }),
              AllOf(HasSubstr("6"), HasSubstr("8"), HasSubstr("cannot share")));
  Module<float> module(context, {.d_model = 4, .heads = 2}, Stacking::none);
  EXPECT_THAT(message_of([&] {
                module.attention(tape, q, k, {rows(6, 4), lengths({6})});
              }),
              HasSubstr("lengths differ"));
  EXPECT_THAT(message_of([&] {
                module.attention(tape, q, k, Mask{Causal::yes, {}});
              }),
              HasSubstr("query offset"));

  const Padding padding(std::vector<int64_t>{2, 3}, 3);
  EXPECT_THAT(message_of([&] { padding.visible_keys({Causal::no, 0}, padding); }), HasSubstr("offset of 0"));
  const std::vector<uint8_t> mask{1, 0, 1};
  EXPECT_THAT(message_of([&] { Padding(mask, 2, 2, BooleanMask::keep); }),
              AllOf(HasSubstr("3 values"), HasSubstr("2")));
  EXPECT_THAT(message_of([&] { Padding(std::vector<int64_t>{4}, 3); }),
              AllOf(HasSubstr("4"), HasSubstr("3")));
}

// What must not compile: a bare boolean where a mask is meant, a boolean mask without its meaning.
static_assert(!std::is_constructible_v<Mask, bool>);
static_assert(!std::is_convertible_v<bool, Mask>);
static_assert(!std::is_convertible_v<bool, Causal>);
static_assert(!std::is_convertible_v<bool, BooleanMask>);
static_assert(!std::is_convertible_v<Tensor<float>, Mask>);
static_assert(!std::is_constructible_v<Padding, std::span<const uint8_t>, int64_t, int64_t>);
static_assert(!std::is_constructible_v<Padding, std::span<const uint8_t>, int64_t, int64_t, bool>);
template <class M>
concept MasksMultiHead = requires(const MultiHeadAttention<float>& a, Tape<float>& t,
                                  const Ragged<Var<float>>& x, M mask) {
  a(t, x, mask);
};
static_assert(MasksMultiHead<Mask>);
static_assert(!MasksMultiHead<bool>);
static_assert(!MasksMultiHead<Causal>);
static_assert(!MasksMultiHead<std::vector<bool>>);

}  // namespace
}  // namespace gloss::attention
