#include "gloss/kernels/gemm_vnni.h"

#include <array>
#include <cstring>
#include <utility>

#include "gloss/kernels/intrinsics.h"

// What follows is compiled for a CPU that has more than the one we build for: no function of the standard
// library's may be born here.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512vnni")

#include "gloss/kernels/gemm_tile512-inl.h"

namespace gloss::kernels {
namespace {

struct VnniOperation {
  using Sum = int32_t;
  using Vector = __m512i;
  static Vector start(const TileInput& in, int vector) {
    return _mm512_loadu_si512(in.start + vector * kWideLanes);
  }
  static Vector add_product(Vector sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); }
  static void store(int32_t* to, Vector sum) { _mm512_storeu_si512(to, sum); }
};

__m512i rounded(__m512 x, __m512 factors) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(x, factors));
}

}  // namespace

TileFunction<int32_t> vnni_tile(int64_t rows, int64_t width, bool together) {
  return together ? word_tile_of_panels<VnniOperation>(rows) : word_tile<VnniOperation, false>(rows, width);
}

void vnni_round(const float* x, int64_t count, float factor, std::byte* words) {
  const __m512 factors = _mm512_set1_ps(factor);
  // Packing works in quarters of a register: quarter q of the result holds the words q of four vectors.
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  int64_t k = 0;
  for (; k + 64 <= count; k += 64) {
    const __m512i q01 = _mm512_packs_epi32(rounded(_mm512_loadu_ps(x + k), factors),
                                           rounded(_mm512_loadu_ps(x + k + 16), factors));
    const __m512i q23 = _mm512_packs_epi32(rounded(_mm512_loadu_ps(x + k + 32), factors),
                                           rounded(_mm512_loadu_ps(x + k + 48), factors));
    const __m512i q = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(q01, q23));
    _mm512_storeu_si512(words + k, _mm512_xor_si512(q, _mm512_set1_epi8(-128)));
  }
  for (; k < count; k += 16) {
    const int64_t rest = count - k;
    const auto lanes = static_cast<__mmask16>(rest >= 16 ? 0xffff : (1u << rest) - 1);
    const auto padded =
        static_cast<__mmask16>(rest >= 16 ? 0xffff : (1u << multiple(rest, kVnniPerStep)) - 1);
    const __m128i q = _mm512_cvtsepi32_epi8(rounded(_mm512_maskz_loadu_ps(lanes, x + k), factors));
    _mm_mask_storeu_epi8(words + k, padded, _mm_xor_si128(q, _mm_set1_epi8(-128)));
  }
}

}  // namespace gloss::kernels

HWY_POP_ATTRIBUTES
