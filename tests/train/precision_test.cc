// Training with products of rounded numbers.
#include "gloss/kernels/precision.h"

#include <cmath>

#include "gloss/kernels/isa.h"
#include "train/fixture.h"

namespace gloss::train {
namespace {

double perplexity(Task& task, const char* name, const char* preset, const char* precision) {
  task.into(name).set("preset", preset).set("precision", precision).set("max-updates", "120");
  return train(task).perplexity;
}

TEST(Bfloat16, LearnsWhatFloat32Learns) {
  if (!kernels::precision_served(kernels::Precision::bfloat16)) GTEST_SKIP() << "this CPU does not serve it";
  Task task;
  const double plain = perplexity(task, "plain", "tiny", "float32"),
               rounded = perplexity(task, "rounded", "tiny", "bfloat16");
  EXPECT_LT(plain, 6);        // of a dozen pieces
  EXPECT_NE(plain, rounded);  // it does round
  EXPECT_NEAR(std::log(rounded), std::log(plain), 0.1);
}

TEST(Bfloat16, TrainsTheRecurrentModel) {
  if (!kernels::precision_served(kernels::Precision::bfloat16)) GTEST_SKIP() << "this CPU does not serve it";
  const auto train_one = [](const char* precision) {
    Task task;
    for (const char* transformer : {"d-model", "encoder-layers", "decoder-layers", "encoder-heads",
                                    "decoder-heads", "encoder-ff", "decoder-ff"})
      task.options.typed.erase(transformer);
    for (const char* width : {"embedding", "hidden", "attention", "maxout"}) task.set(width, "16");
    return perplexity(task, "recurrent", "rnn-small", precision);
  };
  const double plain = train_one("float32"), rounded = train_one("bfloat16");
  EXPECT_NE(plain, rounded);
  EXPECT_NEAR(std::log(rounded), std::log(plain), 0.1);
}

TEST(Bfloat16, IsRefusedBeforeAnythingIsWritten) {
  Task task;
  task.set("precision", "bfloat16");
  const kernels::Isa before = kernels::current_isa();
  kernels::limit_isa(kernels::Isa::avx2);
  EXPECT_THAT(error_of_training(task), testing::HasSubstr("bfloat16 needs AVX512_BF16"));
  kernels::limit_isa(before);
  EXPECT_FALSE(fs::exists(task.output()));
}

}  // namespace
}  // namespace gloss::train
