#include "gloss/models/model_folder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "gloss/base/thread_pool.h"
#include "gloss/io/input_file.h"
#include "gloss/io/json_file.h"
#include "gloss/io/quote.h"
#include "gloss/io/safetensors.h"
#include "gloss/models/model_config.h"
#include "gloss/models/model_format.h"
#include "gloss/nn/positions.h"

namespace gloss::models {

using autograd::Holding;
using kernels::Precision;

namespace {

namespace fs = std::filesystem;

std::string shape_text(std::span<const int64_t> shape) {
  return shape.empty() ? "[]" : Shape(shape).text();
}

// More would wait for memory.
constexpr int kLoadingThreads = 4;

constexpr const char* kPositions[] = {"model.encoder.embed_positions.weight",
                                      "model.decoder.embed_positions.weight"};

// What the tensors say of the configuration. Positions that a file holds are what other programs add,
// whatever config.json says: they tell the layout.
void adapt(TransformerConfig& config, const io::SafetensorsFile& file, Arena& arena) {
  constexpr int64_t kRows = 64;        // that are looked at
  constexpr float kTolerance = 0.01F;  // bfloat16 keeps three digits
  for (const char* name : kPositions) {
    if (!file.has(name)) continue;
    require(nn::is_sinusoidal(config.positions),
            "{}: tensor '{}' has no place beside the relative positions that config.json describes",
            file.path().string(), name);
    const std::vector<int64_t>& shape = file.info(name).shape;
    require(shape.size() == 2 && shape[1] == config.d_model,
            "{}: tensor '{}' must have a row of {} numbers a position, not the shape {}",
            file.path().string(), name, config.d_model,
            shape.size() <= Shape::kMaxRank ? shape_text(shape) : "of more dimensions");
    const Tensor<float> stored = file.read<float>(name, arena);
    const int64_t rows = std::min(kRows, shape[0]);
    const auto agrees = [&](nn::PositionLayout layout) {
      const Tensor<float> made = nn::sinusoidal_positions<float>(arena, 0, rows, config.d_model, layout);
      return std::ranges::equal(made.values(), stored.values().first(made.values().size()),
                                [](float a, float b) { return std::abs(a - b) <= kTolerance; });
    };
    const auto other = config.positions == nn::PositionLayout::halves ? nn::PositionLayout::interleaved
                                                                      : nn::PositionLayout::halves;
    if (agrees(config.positions)) continue;
    require(
        agrees(other),
        "{}: the numbers of '{}' are no sinusoidal positions, and only those can be computed; models with "
        "learned positions cannot be opened",
        file.path().string(), name);
    config.positions = other;
  }
}

// Tensors that some writers store though the configuration makes them: sinusoids, and copies of a tied table.
bool is_redundant(const std::string& name, const io::SafetensorsFile& file) {
  if (std::ranges::find(kPositions, name) != std::end(kPositions)) return true;
  for (const char* tied :
       {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
    if (name != tied || !file.has("model.shared.weight")) continue;
    const io::TensorInfo &copy = file.info(name), &table = file.info("model.shared.weight");
    if (copy.dtype != table.dtype || copy.shape != table.shape) return false;
    std::vector<std::byte> a(copy.bytes), b(table.bytes);
    file.read_bytes(name, a);
    file.read_bytes("model.shared.weight", b);
    return a == b;
  }
  return false;
}

// What products multiply where nobody says it: the numbers that `gloss quantize` rounded the weights to.
Precision stored_precision(const io::JsonObject& json) {
  const std::string name = json.text(kPrecisionKey, "float32");
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    if (name == kernels::precision_name(precision)) return precision;
  }
  json.reject(kPrecisionKey, "float32, bfloat16 or int8");
}

// Before memory is asked for: the file holds as many numbers as the configuration promises.
void require_count(const io::SafetensorsFile& file, int64_t expected) {
  int64_t found = 0;
  for (const std::string& name : file.names()) found += file.info(name).count();
  require(found >= expected, "{}: config.json describes a model of {} numbers, the file holds {}",
          file.path().string(), expected, found);
}

// Rows without gaps between them.
template <class T>
std::span<T> numbers_of(kernels::Matrix<T> rows) {
  return {rows.data, static_cast<size_t>(rows.rows * rows.cols)};
}

// The tensors of a file as the parts of a model, each of the shape that config.json asks for.
class FileParts final : public autograd::PartSource<float> {
 public:
  explicit FileParts(const io::SafetensorsFile& file) : file_(file) {}

  void read(const Rows& rows, kernels::Matrix<float> into) override {
    if (!is_int8(rows.name)) {
      check(rows.name, file_shape(rows.name, rows.whole));
      return file_.read_part<float>(rows.name, rows.first * into.cols, numbers_of(into));
    }
    std::vector<int8_t> numbers(numbers_of(into).size());
    std::vector<float> scales(static_cast<size_t>(into.rows));
    read_int8(rows, {numbers.data(), into.rows, into.cols, into.cols}, scales);
    for (size_t i = 0; i < numbers.size(); ++i)
      into.data[i] = static_cast<float>(numbers[i]) * scales[i / static_cast<size_t>(into.cols)];
  }
  bool is_int8(const std::string& name) const override {
    return file_.has(name) && file_.info(name).dtype == io::Dtype::kI8;
  }
  void read_int8(const Rows& rows, kernels::Matrix<int8_t> into, std::span<float> scales) override {
    const std::string &name = rows.name, of_scales = name + kScaleSuffix;
    check(name, {rows.whole[0], into.cols});
    check(of_scales, {rows.whole[0]});
    const std::span<int8_t> numbers = numbers_of(into);
    file_.read_bytes_part(name, static_cast<uint64_t>(rows.first * into.cols),
                          std::as_writable_bytes(numbers));
    file_.read_part<float>(of_scales, rows.first, scales);
    require(
        std::memchr(numbers.data(), 0x80, numbers.size()) == nullptr,
        "{}: tensor '{}' holds -128, and whole numbers of -127 to 127 are expected: quantize the model again",
        file_.path().string(), name);
    require(std::ranges::all_of(scales, [](float scale) { return scale >= 0 && std::isfinite(scale); }),
            "{}: tensor '{}' holds a scale that is negative or no number: quantize the model again",
            file_.path().string(), of_scales);
  }
  // Throws Error where the file holds a tensor that no part asked for.
  void require_all_read() const {
    for (const std::string& name : file_.names()) {
      require(used_.contains(name) || is_redundant(name, file_),
              "{}: tensor '{}' has no place in the model that config.json describes", file_.path().string(),
              name);
    }
  }

 private:
  void check(const std::string& name, const std::vector<int64_t>& expected) {
    require(file_.has(name), "{}: tensor '{}' is missing, though config.json asks for it",
            file_.path().string(), name);
    const std::vector<int64_t>& found = file_.info(name).shape;
    require(found == expected, "{}: tensor '{}' must have shape {} by config.json, not {}",
            file_.path().string(), name, shape_text(expected),
            found.size() <= Shape::kMaxRank ? shape_text(found) : "of more dimensions");
    const std::lock_guard lock(mutex_);
    used_.insert(name);
  }
  const io::SafetensorsFile& file_;
  std::mutex mutex_;
  std::set<std::string> used_;
};

// A recurrent model has no positions.
void adapt(RnnSearchConfig&, const io::SafetensorsFile&, Arena&) {}

std::unique_ptr<Model> load(const fs::path& folder, Arena& arena, Holding holding,
                            std::optional<Precision> wanted) {
  require(io::exists(folder), "there is no model folder {}: check the path", io::shown(folder));
  require(io::is_folder(folder), "{} is a file, but a model folder is expected: name the folder it is in",
          io::shown(folder));
  if (!io::exists(folder / "config.json")) {
    fail("{} does not exist: {}", io::shown(folder / "config.json"),
         io::exists(folder / "training")
             ? "a training into this folder has not come to its first validation; give its command again"
             : "this is no model folder");
  }
  const auto json = io::JsonObject::read(folder / "config.json");
  const Precision precision = wanted ? *wanted : stored_precision(json);
  if (!wanted) kernels::require_precision(precision);
  ModelConfig config = model_config_from_json(json);
  const auto file = io::SafetensorsFile::open(folder / "model.safetensors");
  require_count(file, parameter_count(config));
  std::visit([&](auto& own) { adapt(own, file, arena); }, config);
  auto model = make_model(config, arena, holding);
  FileParts parts(file);
  ThreadPool pool(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kLoadingThreads));
  model->parameters().load(pool, parts, precision);
  parts.require_all_read();
  return model;
}

}  // namespace

std::unique_ptr<Model> load_model(const fs::path& folder, Arena& arena) {
  return load(folder, arena, Holding::numbers, Precision::float32);
}

std::unique_ptr<Model> load_packed_model(const fs::path& folder, Arena& arena,
                                         std::optional<Precision> precision) {
  if (precision) kernels::require_precision(*precision);
  return load(folder, arena, Holding::packed, precision);
}

}  // namespace gloss::models
