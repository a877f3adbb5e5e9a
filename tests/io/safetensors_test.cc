#include "gloss/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "gloss/base/random.h"
#include "gloss/io/float16.h"
#include "io/scratch.h"

namespace gloss::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::string file_of(const std::string& header, const std::string& data = "",
                    std::optional<uint64_t> length = {}) {
  const uint64_t announced = length.value_or(header.size());
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &announced, 8);
  return bytes + header + data;
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

TEST(Safetensors, WritesAndReadsEveryWrittenType) {
  const Scratch scratch;
  Arena arena;
  const std::vector<float> floats{1.5f, -0.0f, std::numeric_limits<float>::infinity(), 4.0f, 5.0f, 6.0f};
  const std::vector<double> doubles{0.1, -1e300};
  const std::vector<int64_t> longs{std::numeric_limits<int64_t>::min(), 7};
  const std::vector<int32_t> ints{-5};
  const std::vector<int8_t> chars{-128, 127, 3};
  const std::vector<uint8_t> bytes{255};
  SafetensorsWriter writer;
  writer.set_metadata("format", "pt");
  writer.set_metadata("note", "täglich");
  writer.add<uint8_t>("bytes", {1}, bytes);
  writer.add<int8_t>("chars", {3, 1}, chars);
  writer.add<float>("floats", {2, 3}, floats);
  writer.add<int64_t>("longs", {2}, longs);
  writer.add<double>("doubles", {2}, doubles);
  writer.add<int32_t>("ints", {}, ints);
  writer.add("tensor", Tensor<float>::from(arena, {1, 2, 1, 2}, std::span(floats).first(4)));
  writer.write(scratch / "x.safetensors");
  EXPECT_EQ(writer.file_bytes(), std::filesystem::file_size(scratch / "x.safetensors"));

  const auto file = SafetensorsFile::open(scratch / "x.safetensors");
  EXPECT_THAT(file.names(), ElementsAre("bytes", "chars", "doubles", "floats", "ints", "longs", "tensor"));
  EXPECT_EQ(file.metadata().at("note"), "täglich");
  EXPECT_EQ(file.info("chars").dtype, Dtype::kI8);
  EXPECT_THAT(file.info("chars").shape, ElementsAre(3, 1));
  EXPECT_TRUE(file.has("ints"));
  EXPECT_FALSE(file.has("int"));
  const auto matrix = file.read<float>("floats", arena);
  EXPECT_EQ(matrix.shape(), (Shape{2, 3}));
  EXPECT_EQ(0, std::memcmp(matrix.data(), floats.data(), 24));
  EXPECT_EQ(file.read<double>("doubles", arena)(0, 1), -1e300);
  EXPECT_EQ(file.read<float>("doubles", arena)(0, 0), 0.1f);
  EXPECT_EQ(file.read<double>("floats", arena)(1, 1), 5.0);
  EXPECT_EQ(file.read<float>("tensor", arena).shape(), (Shape{1, 2, 1, 2}));
  EXPECT_EQ(file.read_ints("longs"), longs);
  EXPECT_THAT(file.read_ints("ints"), ElementsAre(-5));
  EXPECT_THAT(file.read_ints("chars"), ElementsAre(-128, 127, 3));
  EXPECT_THAT(file.read_ints("bytes"), ElementsAre(255));
  std::vector<std::byte> raw(3);
  file.read_bytes("chars", raw);
  EXPECT_EQ(raw[0], std::byte{0x80});
}

TEST(Safetensors, EqualContentsGiveEqualAlignedBytes) {
  const Scratch scratch;
  const std::vector<float> values{1, 2};
  const std::vector<uint8_t> odd{1, 2, 3};
  const std::vector<double> wide{4};
  SafetensorsWriter first, second;
  first.set_metadata("b", "2");
  first.set_metadata("a", "1");
  second.set_metadata("a", "1");
  second.set_metadata("b", "2");
  first.add<uint8_t>("a", {3}, odd);
  first.add<double>("z", {1}, wide);
  first.add<float>("m", {2}, values);
  second.add<float>("m", {2}, values);
  second.add<double>("z", {1}, wide);
  second.add<uint8_t>("a", {3}, odd);
  first.write(scratch / "1");
  second.write(scratch / "2");
  EXPECT_EQ(contents(scratch / "1"), contents(scratch / "2"));
  const auto file = SafetensorsFile::open(scratch / "1");
  for (const std::string& name : file.names())
    EXPECT_EQ(file.info(name).begin % dtype_bytes(file.info(name).dtype), 0u) << name;
  EXPECT_EQ(file.info("z").begin % 8, 0u);

  SafetensorsWriter given(TensorOrder::kGiven);
  given.add<uint8_t>("a", {3}, odd);
  given.add<double>("z", {1}, wide);
  given.write(scratch / "3");
  const auto kept = SafetensorsFile::open(scratch / "3");
  EXPECT_LT(kept.info("a").begin, kept.info("z").begin);
}

TEST(Safetensors, HoldsNoTensorAndEmptyTensors) {
  const Scratch scratch;
  Arena arena;
  SafetensorsWriter().write(scratch / "none");
  EXPECT_TRUE(SafetensorsFile::open(scratch / "none").names().empty());
  SafetensorsWriter writer;
  writer.add<float>("a", {0, 4}, {});
  writer.add<float>("b", {2, 0}, {});
  writer.write(scratch / "empty");
  const auto file = SafetensorsFile::open(scratch / "empty");
  EXPECT_EQ(file.read<float>("a", arena).shape(), (Shape{0, 4}));
  EXPECT_EQ(file.read<double>("b", arena).size(), 0);
}

TEST(Safetensors, ConvertsHalfAndBfloat16) {
  EXPECT_EQ(half_to_float(0x3C00), 1.0f);
  EXPECT_EQ(half_to_float(0xC000), -2.0f);
  EXPECT_EQ(half_to_float(0x7BFF), 65504.0f);
  EXPECT_EQ(half_to_float(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(half_to_float(0x03FF), std::ldexp(1023.0f, -24));
  EXPECT_EQ(half_to_float(0x0400), std::ldexp(1.0f, -14));
  EXPECT_EQ(half_to_float(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half_to_float(0x7E00)));
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  // Every finite half against the definition (-1)^s 2^(e-15) (1 + f / 1024).
  for (uint32_t bits = 0x0400; bits < 0x7C00; ++bits) {
    const double expected = std::ldexp(1.0 + (bits & 0x3FF) / 1024.0, static_cast<int>(bits >> 10) - 15);
    ASSERT_EQ(half_to_float(static_cast<uint16_t>(bits)), expected) << bits;
  }
  const Scratch scratch;
  Arena arena;
  put(scratch / "x", file_of(R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[4,8]},)"
                             R"("t":{"dtype":"BOOL","shape":[2],"data_offsets":[8,10]}})",
                             bytes_of<uint16_t>({0x3C00, 0xC000, 0x3F80, 0xC2F7}) + std::string("\0\1", 2)));
  const auto file = SafetensorsFile::open(scratch / "x");
  EXPECT_THAT(file.read<double>("h", arena).values(), ElementsAre(1.0, -2.0));
  EXPECT_THAT(file.read<float>("b", arena).values(), ElementsAre(1.0f, -123.5f));
  EXPECT_THAT(file.read_ints("t"), ElementsAre(0, 1));
}

// Larger than the piece in which numbers are converted.
TEST(Safetensors, ConvertsLargeTensorsInPieces) {
  const Scratch scratch;
  Arena arena;
  std::vector<double> values(50'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) * 0.5;
  SafetensorsWriter writer;
  writer.add<double>("x", {static_cast<int64_t>(values.size())}, values);
  writer.write(scratch / "x");
  const auto tensor = SafetensorsFile::open(scratch / "x").read<float>("x", arena);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(tensor.values()[i], static_cast<float>(values[i]));
}

TEST(Safetensors, OpensTheGoldenFiles) {
  const auto file = SafetensorsFile::open(GLOSS_TEST_GOLDEN "/transformer.safetensors");
  EXPECT_EQ(file.metadata().at("d_model"), "16");
  EXPECT_THAT(file.info("src").shape, ElementsAre(3, 7));
  EXPECT_EQ(file.read_ints("src_len").size(), 3u);
  Arena arena;
  const auto marian = SafetensorsFile::open(GLOSS_TEST_GOLDEN "/hf-marian-tied/model.safetensors");
  EXPECT_EQ(marian.read<float>("final_logits_bias", arena).shape(), (Shape{1, 64}));
  EXPECT_THAT(marian.names(), IsSupersetOf({std::string("model.decoder.layers.0.fc1.weight")}));
  int opened = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GLOSS_TEST_GOLDEN)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto each = SafetensorsFile::open(entry.path());
    for (const std::string& name : each.names()) {
      std::vector<std::byte> raw(each.info(name).bytes);
      each.read_bytes(name, raw);
    }
    ++opened;
  }
  EXPECT_GE(opened, 5);
}

TEST(Safetensors, RefusesMisuse) {
  const Scratch scratch;
  Arena arena;
  const std::vector<float> two{1, 2};
  const std::vector<int64_t> ids{3};
  SafetensorsWriter writer;
  writer.add<float>("x", {1, 1, 1, 1, 2}, two);
  writer.add<int64_t>("ids", {1}, ids);
  EXPECT_THAT(message_of([&] { writer.add<float>("x", {2}, two); }), HasSubstr("'x' is added twice"));
  EXPECT_THAT(message_of([&] { writer.add<float>("y", {3}, two); }),
              HasSubstr("[3] of F32 needs 12 bytes, 8"));
  EXPECT_THAT(message_of([&] { writer.add<float>("__metadata__", {2}, two); }), HasSubstr("cannot be named"));
  EXPECT_THAT(message_of([&] { writer.add("none", Tensor<float>()); }), HasSubstr("'none' holds nothing"));
  writer.write(scratch / "x");
  const auto file = SafetensorsFile::open(scratch / "x");
  EXPECT_THAT(message_of([&] { file.info("nein"); }), HasSubstr("there is no tensor 'nein'"));
  EXPECT_THAT(message_of([&] { file.read<float>("x", arena); }), HasSubstr("more than 4 dimensions"));
  EXPECT_THAT(message_of([&] { file.read<float>("ids", arena); }), HasSubstr("not I64"));
  EXPECT_THAT(message_of([&] { file.read_ints("x"); }), HasSubstr("whole numbers were expected, not F32"));
  std::vector<float> three(3);
  EXPECT_THAT(message_of([&] { file.read_into<float>("x", three); }),
              HasSubstr("holds 2 numbers, 3 were expected"));
  EXPECT_THAT(message_of([&] { file.read_part<float>("x", 1, std::span(three).first(2)); }),
              HasSubstr("holds 8 bytes, and 8 from byte 4 on were expected"));
  file.read_part<float>("x", 1, std::span(three).first(1));
  EXPECT_EQ(three[0], two[1]);
  SafetensorsWriter latin;
  latin.add<float>("\xE4", {2}, two);
  EXPECT_THAT(message_of([&] { latin.write(scratch / "y"); }), HasSubstr("UTF-8"));
}

struct Hostile {
  std::string name;
  std::string bytes;
  std::string complaint;
};

std::vector<Hostile> hostile_files() {
  const auto one = [](const std::string& entry, const std::string& data) {
    return file_of(R"({"x":)" + entry + "}", data);
  };
  const std::string eight(8, 'x');
  std::vector<Hostile> files{
      {"empty", "", "0 bytes are no safetensors file"},
      {"short", "abc", "3 bytes are no safetensors file"},
      {"length 2^60", file_of("{}", "", uint64_t{1} << 60), "a header of 1152921504606846976 bytes"},
      {"length 2^64-1", file_of("{}", "", ~uint64_t{0}), "at most 100000000 are allowed"},
      {"length past the end", file_of("{}", "", 3), "but only 2 follow"},
      {"no header", file_of(""), "does not begin with '{'"},
      {"text", "This is a text file, not a model.", "at most 100000000 are allowed"},
      {"list", file_of("[]"), "does not begin with '{'"},
      {"not JSON", file_of("{nonsense}"), "not valid JSON"},
      {"JSON cut short", file_of(R"({"x":)"), "not valid JSON"},
      {"not UTF-8", file_of("{\"\xFF\":1}"), "not valid JSON"},
      {"deep", file_of(R"({"x":)" + std::string(100'000, '[')), "nested deeper"},
      {"twice", file_of(R"({"x":1,"x":2})"), "the name 'x' stands twice"},
      {"entry is a number", one("1", ""), "'x': a JSON object was expected, not 1"},
      {"no dtype", one(R"({"shape":[],"data_offsets":[0,4]})", "1234"), "'dtype' is missing"},
      {"dtype twice", one(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", "1234"),
       "'dtype' stands twice"},
      {"unknown dtype", one(R"({"dtype":"F8","shape":[4],"data_offsets":[0,4]})", "1234"),
       "'dtype' must be one of F64"},
      {"shape of text", one(R"({"dtype":"F32","shape":["1"],"data_offsets":[0,4]})", "1234"), "'shape' must"},
      {"negative shape", one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", "1234"),
       "'shape' must be a list, each item a whole number of at least 0, not -1"},
      {"fractional shape", one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})", "1234"), "not 1.5"},
      {"shape past 2^63",
       one(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]})", "1234"), "'shape' must"},
      {"overflow to the right size",
       one(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})", "1234"), "overflows"},
      {"overflow by product",
       one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", ""), "overflows"},
      {"shape too large", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", eight),
       "shape [3] of F32 needs 12 bytes, its offsets span 8"},
      {"one offset", one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", "1234"), "'data_offsets' must"},
      {"offsets reversed", one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", "1234"),
       "'data_offsets' must be [begin, end]"},
      {"negative offset", one(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", "1234"), "not -4"},
      {"offset out of range",
       one(R"({"dtype":"F32","shape":[1],"data_offsets":[9223372036854775803,9223372036854775807]})", "1234"),
       "a gap"},
      {"data cut short", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})", eight),
       "ends at byte 12 of the data, the file holds 8"},
      {"bytes left over", one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", eight),
       "4 bytes follow the last tensor"},
      {"gap", one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", eight), "a gap"},
      {"overlap",
       file_of(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
               R"("y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
               "123456"),
       "'y': begins at byte 2 of the data, overlapping"},
      {"extra key", one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"z":1})", "1234"), "only dtype"},
      {"metadata not text", file_of(R"({"__metadata__":{"a":1}})"), "'a' must be a text"},
      {"metadata a list", file_of(R"({"__metadata__":[]})"), "a JSON object was expected, not a list"},
  };
  return files;
}

TEST(Safetensors, NamesWhatIsWrongWithAHostileFile) {
  const Scratch scratch;
  for (const Hostile& hostile : hostile_files()) {
    SCOPED_TRACE(hostile.name);
    put(scratch / "model.safetensors", hostile.bytes);
    const std::string message = message_of([&] { SafetensorsFile::open(scratch / "model.safetensors"); });
    EXPECT_THAT(message, HasSubstr(hostile.complaint));
    EXPECT_THAT(message, HasSubstr("model.safetensors"));
    EXPECT_LT(message.size(), 500u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Safetensors, NamesMissingFilesFoldersAndPipes) {
  const Scratch scratch;
  EXPECT_THAT(message_of([&] { SafetensorsFile::open(scratch / "no"); }),
              HasSubstr("no does not exist: check the path"));
  EXPECT_THAT(message_of([&] { SafetensorsFile::open(scratch.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(message_of([&] { SafetensorsFile::open("/dev/zero"); }), HasSubstr("a device or pipe"));
}

TEST(Safetensors, SurvivesAFileCutWhileItIsOpen) {
  const Scratch scratch;
  Arena arena;
  const std::vector<float> values(1000, 1.0f);
  SafetensorsWriter writer;
  writer.add<float>("x", {1000}, values);
  writer.write(scratch / "x");
  const auto file = SafetensorsFile::open(scratch / "x");
  std::filesystem::resize_file(scratch / "x", 2000);
  EXPECT_THAT(message_of([&] { file.read<float>("x", arena); }), HasSubstr("it ends at byte 2000"));
}

// Every truncation and thousands of random byte changes: an error or a readable file, never a crash.
TEST(Safetensors, SurvivesDamage) {
  const Scratch scratch;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> ids{1, 2};
  SafetensorsWriter writer;
  writer.set_metadata("format", "pt");
  writer.add<float>("weight", {2, 3}, values);
  writer.add<int64_t>("ids", {2}, ids);
  const std::filesystem::path path = scratch / "x";
  writer.write(path);
  const std::string whole = contents(path);
  // In memory: thousands of truncations of a real file would wait for the disk.
  const int memory = ::memfd_create("damaged", 0);
  ASSERT_GE(memory, 0);
  const std::filesystem::path damaged = "/proc/self/fd/" + std::to_string(memory);
  const auto opens = [&](const std::string& bytes) {
    EXPECT_EQ(::ftruncate(memory, static_cast<off_t>(bytes.size())), 0);
    EXPECT_EQ(::pwrite(memory, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    try {
      Arena arena;
      const auto file = SafetensorsFile::open(damaged);
      for (const std::string& name : file.names()) {
        const TensorInfo& info = file.info(name);
        std::vector<std::byte> raw(info.bytes);
        file.read_bytes(name, raw);
        if (info.shape.size() <= 4 && (info.dtype == Dtype::kF32 || info.dtype == Dtype::kF16))
          file.read<float>(name, arena);
      }
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  ASSERT_TRUE(opens(whole));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(opens(whole.substr(0, size))) << size;
  const RandomKey key(7);
  int opened = 0;
  const size_t header = whole.size() - 40;
  for (uint64_t trial = 0; trial < 6000; ++trial) {
    std::string bytes = whole;
    const uint64_t changes = 1 + key.below(trial * 16, 3);
    for (uint64_t i = 1; i <= changes; ++i) {
      const size_t at = key.below(trial * 16 + 2 * i, header);
      bytes[at] = trial % 2 ? static_cast<char>(key.bits(trial * 16 + 2 * i + 1))
                            : "0123456789[]{},:\"-e."[key.below(trial * 16 + 2 * i + 1, 20)];
    }
    opened += opens(bytes);
  }
  EXPECT_GT(opened, 0);  // a changed name or metadata is still a whole file
  EXPECT_LT(opened, 3000);
  ::close(memory);
}

}  // namespace
}  // namespace gloss::io
