#include "gloss/io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "gloss/io/float16.h"
#include "gloss/io/json_file.h"
#include "gloss/io/quote.h"

namespace gloss::io {

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian numbers");

namespace {

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  size_t bytes;
};
constexpr std::array<DtypeRow, 9> kDtypes{{{Dtype::kF64, "F64", 8},
                                           {Dtype::kF32, "F32", 4},
                                           {Dtype::kF16, "F16", 2},
                                           {Dtype::kBF16, "BF16", 2},
                                           {Dtype::kI64, "I64", 8},
                                           {Dtype::kI32, "I32", 4},
                                           {Dtype::kI8, "I8", 1},
                                           {Dtype::kU8, "U8", 1},
                                           {Dtype::kBool, "BOOL", 1}}};

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;  // the reference library's limit

// Bytes of a tensor, or nothing when they cannot be counted in 63 bits.
std::optional<uint64_t> bytes_of(const std::vector<int64_t>& shape, Dtype dtype) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t bytes = dtype_bytes(dtype);
  for (const int64_t dim : shape) {
    const auto n = static_cast<uint64_t>(dim);
    if (n != 0 && bytes > kMost / n) return std::nullopt;
    bytes *= n;
  }
  return bytes;
}

// One entry of the header, its offsets still relative to the first tensor.
TensorInfo parse_entry(const JsonObject& entry) {
  TensorInfo info;
  const std::string dtype = entry.text("dtype");
  const auto* row =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& r) { return r.name == dtype; });
  if (row == kDtypes.end()) entry.reject("dtype", "one of F64, F32, F16, BF16, I64, I32, I8, U8, BOOL");
  info.dtype = row->dtype;
  info.shape = entry.wholes("shape", JsonObject::kNotNegative);
  const std::vector<int64_t> offsets = entry.wholes("data_offsets", JsonObject::kNotNegative);
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    fail("{}: 'data_offsets' must be [begin, end] with begin <= end, not {}", entry.name(),
         abridged(entry.json()["data_offsets"].dump()));
  require(entry.json().size() == 3, "{}: only dtype, shape and data_offsets are allowed", entry.name());
  info.begin = static_cast<uint64_t>(offsets[0]);
  info.bytes = static_cast<uint64_t>(offsets[1]) - info.begin;
  const std::optional<uint64_t> expected = bytes_of(info.shape, info.dtype);
  require(expected.has_value(), "{}: shape [{}] overflows", entry.name(), fmt::join(info.shape, ", "));
  require(*expected == info.bytes, "{}: shape [{}] of {} needs {} bytes, its offsets span {}", entry.name(),
          fmt::join(info.shape, ", "), dtype, *expected, info.bytes);
  return info;
}

// Converts `raw`, elements of type From, to T.
template <class From, class T, class Convert>
void convert(std::span<const std::byte> raw, T* out, Convert&& one) {
  for (size_t i = 0; i < raw.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, raw.data() + i * sizeof(From), sizeof(From));
    out[i] = one(value);
  }
}

template <class T>
void convert_floats(Dtype dtype, std::span<const std::byte> raw, T* out) {
  switch (dtype) {
    case Dtype::kF64:
      return convert<double>(raw, out, [](double x) { return static_cast<T>(x); });
    case Dtype::kF32:
      return convert<float>(raw, out, [](float x) { return static_cast<T>(x); });
    case Dtype::kF16:
      return convert<uint16_t>(raw, out, [](uint16_t x) { return static_cast<T>(half_to_float(x)); });
    case Dtype::kBF16:
      return convert<uint16_t>(raw, out, [](uint16_t x) { return static_cast<T>(bfloat16_to_float(x)); });
    default:
      break;
  }
}

void convert_ints(Dtype dtype, std::span<const std::byte> raw, int64_t* out) {
  const auto widen = [](auto x) { return static_cast<int64_t>(x); };
  switch (dtype) {
    case Dtype::kI64:
      return convert<int64_t>(raw, out, widen);
    case Dtype::kI32:
      return convert<int32_t>(raw, out, widen);
    case Dtype::kI8:
      return convert<int8_t>(raw, out, widen);
    case Dtype::kU8:
    case Dtype::kBool:
      return convert<uint8_t>(raw, out, widen);
    default:
      break;
  }
}

bool is_floating(Dtype dtype) {
  return dtype == Dtype::kF64 || dtype == Dtype::kF32 || dtype == Dtype::kF16 || dtype == Dtype::kBF16;
}

// Calls take(first element, raw bytes) for a tensor, a bounded piece at a time.
template <class Take>
void read_pieces(const InputFile& file, const TensorInfo& info, Take&& take) {
  constexpr uint64_t kPiece = uint64_t{1} << 16;  // bytes, a multiple of every element
  std::vector<std::byte> piece(std::min(kPiece, info.bytes));
  for (uint64_t done = 0; done < info.bytes; done += kPiece) {
    const std::span<std::byte> part(piece.data(), std::min(kPiece, info.bytes - done));
    file.read_at(info.begin + done, part);
    take(done / dtype_bytes(info.dtype), std::span<const std::byte>(part));
  }
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].name;
}

size_t dtype_bytes(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].bytes;
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile file{InputFile(path)};
  const uint64_t size = file.file_.size();
  require(size >= kLengthBytes, "{}: {} bytes are no safetensors file, its header length alone takes 8",
          path.string(), size);
  uint64_t length = 0;
  file.file_.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  require(
      length <= kLargestHeader,
      "{}: a header of {} bytes is announced, at most {} are allowed: this is no safetensors file or it is "
      "damaged",
      path.string(), length, kLargestHeader);
  require(
      length <= size - kLengthBytes,
      "{}: a header of {} bytes is announced, but only {} follow: the file is cut short or no safetensors",
      path.string(), length, size - kLengthBytes);
  std::string header(length, '\0');
  file.file_.read_at(kLengthBytes, std::as_writable_bytes(std::span(header)));
  require(header.starts_with('{'), "{}: the header does not begin with '{{': this is no safetensors file",
          path.string());
  file.parse_header(header, kLengthBytes + length);
  return file;
}

void SafetensorsFile::parse_header(std::string_view header, uint64_t data_begin) {
  const std::string name = path().string();
  const nlohmann::json root = parse_json(header, name, {.bytes = kLargestHeader, .depth = 4});
  std::vector<std::pair<const std::string*, TensorInfo*>> by_offset;
  for (const auto& [key, value] : root.items()) {
    const JsonObject entry(value, fmt::format("{}, {}", name, in_quotes(key)));
    if (key == "__metadata__") {
      for (const auto& [meta_key, meta_value] : value.items()) metadata_[meta_key] = entry.text(meta_key);
      continue;
    }
    const auto it = tensors_.emplace(key, parse_entry(entry)).first;
    by_offset.emplace_back(&it->first, &it->second);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->bytes) < std::pair(b.second->begin, b.second->bytes);
  });
  const uint64_t data_bytes = file_.size() - data_begin;
  uint64_t expected = 0;
  for (const auto& [tensor, info] : by_offset) {
    require(info->begin == expected, "{}, {}: begins at byte {} of the data, {} before it ends at {}", name,
            in_quotes(*tensor), info->begin,
            info->begin < expected ? "overlapping what stands" : "a gap: what stands", expected);
    expected += info->bytes;
    require(expected <= data_bytes, "{}, {}: ends at byte {} of the data, the file holds {}: it is cut short",
            name, in_quotes(*tensor), expected, data_bytes);
    info->begin += data_begin;
  }
  require(expected == data_bytes, "{}: {} bytes follow the last tensor: the file is damaged", name,
          data_bytes - expected);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [name, info] : tensors_) names.push_back(name);
  return names;
}

const TensorInfo& SafetensorsFile::info(std::string_view name) const {
  const auto it = tensors_.find(name);
  require(it != tensors_.end(), "{}: there is no tensor {}", path().string(), in_quotes(name));
  return it->second;
}

template <class T>
void SafetensorsFile::read_into(std::string_view name, std::span<T> out) const {
  const TensorInfo& tensor = info(name);
  require(static_cast<int64_t>(out.size()) == tensor.count(), "{}, {}: holds {} numbers, {} were expected",
          path().string(), in_quotes(name), tensor.count(), out.size());
  read_part(name, 0, out);
}

template <class T>
void SafetensorsFile::read_part(std::string_view name, int64_t first, std::span<T> out) const {
  const uint64_t width = dtype_bytes(info(name).dtype);
  const TensorInfo tensor = part_of(name, static_cast<uint64_t>(first) * width, out.size() * width);
  require(is_floating(tensor.dtype), "{}, {}: floating-point numbers were expected, not {}", path().string(),
          in_quotes(name), dtype_name(tensor.dtype));
  if (tensor.dtype == kDtypeOf<T>) return file_.read_at(tensor.begin, std::as_writable_bytes(out));
  read_pieces(file_, tensor, [&](uint64_t done, std::span<const std::byte> raw) {
    convert_floats(tensor.dtype, raw, out.data() + done);
  });
}

template <class T>
Tensor<T> SafetensorsFile::read(std::string_view name, Arena& arena) const {
  const TensorInfo& tensor = info(name);
  require(tensor.shape.size() <= Shape::kMaxRank, "{}, {}: shape [{}] has more than {} dimensions",
          path().string(), in_quotes(name), fmt::join(tensor.shape, ", "), Shape::kMaxRank);
  require(is_floating(tensor.dtype), "{}, {}: floating-point numbers were expected, not {}", path().string(),
          in_quotes(name), dtype_name(tensor.dtype));
  Tensor<T> out(arena, tensor.shape.empty() ? Shape{1} : Shape(tensor.shape));
  read_into<T>(name, out.values());
  return out;
}

std::vector<int64_t> SafetensorsFile::read_ints(std::string_view name) const {
  const TensorInfo& tensor = info(name);
  require(!is_floating(tensor.dtype), "{}, {}: whole numbers were expected, not {}", path().string(),
          in_quotes(name), dtype_name(tensor.dtype));
  std::vector<int64_t> out(static_cast<size_t>(tensor.count()));
  read_pieces(file_, tensor, [&](uint64_t first, std::span<const std::byte> raw) {
    convert_ints(tensor.dtype, raw, out.data() + first);
  });
  return out;
}

void SafetensorsFile::read_bytes(std::string_view name, std::span<std::byte> out) const {
  const TensorInfo& tensor = info(name);
  require(out.size() == tensor.bytes, "{}, {}: holds {} bytes, {} were expected", path().string(),
          in_quotes(name), tensor.bytes, out.size());
  file_.read_at(tensor.begin, out);
}

void SafetensorsFile::read_bytes_part(std::string_view name, uint64_t first, std::span<std::byte> out) const {
  file_.read_at(part_of(name, first, out.size()).begin, out);
}

TensorInfo SafetensorsFile::part_of(std::string_view name, uint64_t first, uint64_t bytes) const {
  TensorInfo tensor = info(name);
  require(first <= tensor.bytes && bytes <= tensor.bytes - first,
          "{}, {}: holds {} bytes, and {} from byte {} on were expected", path().string(), in_quotes(name),
          tensor.bytes, bytes, first);
  tensor.begin += first;
  tensor.bytes = bytes;
  return tensor;
}

template Tensor<float> SafetensorsFile::read<float>(std::string_view, Arena&) const;
template Tensor<double> SafetensorsFile::read<double>(std::string_view, Arena&) const;
template void SafetensorsFile::read_into<float>(std::string_view, std::span<float>) const;
template void SafetensorsFile::read_into<double>(std::string_view, std::span<double>) const;
template void SafetensorsFile::read_part<float>(std::string_view, int64_t, std::span<float>) const;

}  // namespace gloss::io
