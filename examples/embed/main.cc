// The smallest use of the installed library: threads, memory, a tensor and an error.
#include <cstdio>

#include "gloss/tensor/context.h"
#include "gloss/tensor/tensor.h"

int main() {
  gloss::Context context(2);
  const auto squares = gloss::Tensor<float>::zeros(context.arena, {3, 4});  // [rows, cols]
  context.pool.parallel_for(squares.rows(), [&](int64_t row) {
    for (int64_t col = 0; col < squares.cols(); ++col) squares(row, col) = static_cast<float>(row * row);
  });
  std::printf("%s, last %g\n", squares.shape().text().c_str(), squares(2, 3));

  try {
    squares.reshaped({5, 5});
  } catch (const gloss::Error& error) {
    std::printf("%s\n", error.what());
    return 0;
  }
  return 1;
}
