#include "gloss/kernels/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gloss/base/error.h"
#include "support/isas.h"

namespace gloss::kernels {
namespace {

using ::testing::HasSubstr;

constexpr Precision kAll[] = {Precision::float32, Precision::bfloat16, Precision::int8};

TEST(Precisions, HaveNamesThatAreReadBack) {
  for (const Precision precision : kAll) EXPECT_EQ(parse_precision(precision_name(precision)), precision);
  EXPECT_EQ(precision_name(Precision::bfloat16), "bfloat16");
}

TEST(Precisions, RefuseUnknownNames) {
  for (const char* name : {"", "float", "bf16", "INT8", "int8 "}) {
    try {
      parse_precision(name);
      FAIL() << name;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.what(),
                std::string("unknown precision '") + name + "': choose one of float32, bfloat16, int8");
    }
  }
}

TEST(Precisions, AreServedOrRefusedInASentence) {
  bool refused = false;
  tests::on_every_isa([&](Isa isa) {
    for (const Precision precision : kAll) {
      if (precision != Precision::bfloat16) {
        EXPECT_TRUE(precision_served(precision));
      } else if (isa != Isa::avx512) {
        EXPECT_FALSE(precision_served(precision));
      }
      if (precision_served(precision)) {
        EXPECT_NO_THROW(require_precision(precision));
        continue;
      }
      refused = true;
      try {
        require_precision(precision);
        FAIL() << precision_name(precision);
      } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("bfloat16 needs AVX512_BF16"));
        EXPECT_THAT(error.what(), HasSubstr("choose float32 or int8"));
        EXPECT_THAT(std::string(error.what()),
                    testing::AnyOf(HasSubstr("run on " + std::string(isa_name(isa))),
                                   HasSubstr("has no AVX512_BF16")));
      }
    }
  });
  EXPECT_TRUE(refused) << "no instruction set below avx512 was tried";
}

TEST(Precisions, VnniNeedsAvx512AndCanBeForbidden) {
  tests::on_every_isa([](Isa isa) {
    const bool served = vnni_served();
    EXPECT_FALSE(served && isa != Isa::avx512);
    allow_vnni(false);
    EXPECT_FALSE(vnni_served());
    allow_vnni(true);
    EXPECT_EQ(vnni_served(), served);
  });
}

}  // namespace
}  // namespace gloss::kernels
