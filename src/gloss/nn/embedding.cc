#include "gloss/nn/embedding.h"

#include "gloss/kernels/embedding.h"

namespace gloss::nn {

using autograd::Slot;
using autograd::Tape;
using autograd::Var;
using kernels::matrix;

template <class T>
Var<T> embed(Tape<T>& tape, const Var<T>& table, std::span<const int32_t> ids, double scale,
             PositionRows<T> positions, double p, int64_t frozen_row) {
  for (const int32_t id : ids) {
    require(id >= 0 && id < table.rows(), "token id {} is outside the vocabulary of {} pieces", id,
            table.rows());
  }
  if (positions.rows) {
    require(positions.rows.cols() == table.cols(), "positions of {} numbers do not fit embeddings of {}",
            positions.rows.cols(), table.cols());
    require(positions.position_of.size() == ids.size(), "{} positions for {} tokens",
            positions.position_of.size(), ids.size());
    for (const int64_t position : positions.position_of) {
      require(position >= 0 && position < positions.rows.rows(), "position {} is outside the {} computed",
              position, positions.rows.rows());
    }
  }
  const kernels::Dropout dropout = tape.dropout(p);
  const Tensor<T> y = tape.allocate({static_cast<int64_t>(ids.size()), table.cols()});
  const auto rows =
      positions.rows ? kernels::Matrix<const T>(matrix(positions.rows)) : kernels::Matrix<const T>{};
  const auto run = [&](const Tensor<T>& from, std::span<const int32_t> row_of) {
    kernels::embed_forward<T>(tape.pool(), matrix(from), row_of, static_cast<T>(scale), rows,
                              positions.position_of, dropout, matrix(y));
  };
  if (table.value().has_numbers()) {
    run(table.value(), ids);
  } else {  // a table that is packed as the output layer: its rows are scattered there
    const Tensor<T> gathered = tape.allocate(y.shape());
    std::vector<int32_t> in_order(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      table.parameter()->copy_rows(ids[i], gathered.slice_rows(static_cast<int64_t>(i), 1));
      in_order[i] = static_cast<int32_t>(i);
    }
    run(gathered, in_order);
  }
  return tape.record(y, {&table}, [&] {
    return [table = table.place(), kept = std::vector<int32_t>(ids.begin(), ids.end()), scale, dropout,
            frozen_row](Tape<T>& t, const Tensor<T>& dy) {
      const Slot<T> dtable = t.slot(table);
      if (dtable.accumulate == kernels::Accumulate::no) dtable.tensor.fill(0);
      kernels::embed_backward<T>(t.pool(), kept, static_cast<T>(scale), dropout, matrix(dy), dtable.matrix(),
                                 frozen_row);
    };
  });
}

template Var<float> embed(Tape<float>&, const Var<float>&, std::span<const int32_t>, double,
                          PositionRows<float>, double, int64_t);
template Var<double> embed(Tape<double>&, const Var<double>&, std::span<const int32_t>, double,
                           PositionRows<double>, double, int64_t);

}  // namespace gloss::nn
