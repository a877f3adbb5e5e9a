// In which numbers a matrix product multiplies, and which of them this CPU serves.
#pragma once

#include <cstdint>
#include <string_view>

namespace gloss::kernels {

// float32: as the numbers are. bfloat16: both operands rounded to 8 bits of mantissa, sums in float. int8:
// weights of -127 to 127 with a scale for each output, inputs alike with a scale for each row, sums exact.
enum class Precision : uint8_t { float32, bfloat16, int8 };

std::string_view precision_name(Precision precision);  // "bfloat16"
Precision parse_precision(std::string_view name);      // throws UsageError listing the names there are

// float32 and int8 run on every instruction set; bfloat16 where the CPU has AVX512_BF16 and the kernels run
// on avx512.
bool precision_served(Precision precision);
void require_precision(
    Precision precision);  // UsageError that says what is missing and what to choose instead

// Whether int8 products are made by AVX512_VNNI: where the CPU has it, the kernels run on avx512 and nobody
// has forbidden it. They give the same bits without, which is what forbidding is for: tests compare. For the
// whole process; packed matrices keep the form they were packed in.
bool vnni_served();
void allow_vnni(bool allowed);

}  // namespace gloss::kernels
