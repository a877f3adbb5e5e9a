#include "gloss/text/tokenizer.h"

#include <future>
#include <nlohmann/json.hpp>

#include "gloss/base/error.h"
#include "gloss/io/input_file.h"
#include "gloss/io/json_file.h"
#include "gloss/text/space.h"

namespace gloss::text {
namespace {

constexpr int32_t kLookUp = -1;
constexpr int64_t kMaxLength = 512;  // Marian's own limit; only other programs read it

}  // namespace

Tokenizer::Side Tokenizer::side(Segmenter segmenter, std::shared_ptr<const Vocabulary> vocabulary,
                                std::string_view name) {
  std::vector<int32_t> ids(static_cast<size_t>(segmenter.size()));
  int32_t missing = 0;
  for (int32_t i = 0; i < segmenter.size(); ++i) {
    const auto found = vocabulary->find(segmenter.piece(i));
    if (!found) ++missing;
    ids[static_cast<size_t>(i)] = found.value_or(vocabulary->unknown_id());
  }
  // Published models miss some: their vocabularies hold what was seen in training. Missing most means that
  // the files of two models were mixed.
  require(2 * int64_t{missing} <= segmenter.size(),
          "{} of the {} pieces of {} are not in its vocabulary: the files belong to different models",
          missing, segmenter.size(), name);
  ids[static_cast<size_t>(segmenter.unknown_id())] = kLookUp;
  return {std::move(segmenter), std::move(vocabulary), std::move(ids)};
}

Tokenizer::Tokenizer(Segmenter source, Segmenter target, Vocabulary shared_vocabulary)
    : source_(side(std::move(source), std::make_shared<const Vocabulary>(std::move(shared_vocabulary)),
                   "the source segmentation model")),
      target_(side(std::move(target), source_.vocabulary, "the target segmentation model")) {}

Tokenizer::Tokenizer(Segmenter source, Segmenter target, Vocabulary source_vocabulary,
                     Vocabulary target_vocabulary)
    : source_(side(std::move(source), std::make_shared<const Vocabulary>(std::move(source_vocabulary)),
                   "the source segmentation model")),
      target_(side(std::move(target), std::make_shared<const Vocabulary>(std::move(target_vocabulary)),
                   "the target segmentation model")) {}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  const auto source_model = folder / "source.spm", target_model = folder / "target.spm";
  const auto target_file = folder / "target_vocab.json";
  // Two files of megabytes of text or trees each: at the same time.
  auto target_segmenter = std::async(std::launch::async | std::launch::deferred,
                                     [&target_model] { return Segmenter::load(target_model); });
  const auto vocabulary = std::make_shared<const Vocabulary>(Vocabulary::load(folder / "vocab.json"));
  const auto target_vocabulary = io::exists(target_file)
                                     ? std::make_shared<const Vocabulary>(Vocabulary::load(target_file))
                                     : vocabulary;
  Side source = side(Segmenter::load(source_model), vocabulary, source_model.string());
  return Tokenizer(std::move(source), side(target_segmenter.get(), target_vocabulary, target_model.string()));
}

void Tokenizer::save(const std::filesystem::path& folder, std::string_view source_language,
                     std::string_view target_language) const {
  source_.segmenter.save(folder / "source.spm");
  target_.segmenter.save(folder / "target.spm");
  source_.vocabulary->save(folder / "vocab.json");
  const auto target_file = folder / "target_vocab.json";
  if (shares_vocabulary()) {
    std::error_code ignored;  // a file of an earlier model would be taken for this one's
    std::filesystem::remove(target_file, ignored);
  } else {
    target_.vocabulary->save(target_file);
  }
  nlohmann::ordered_json config = {{"tokenizer_class", "MarianTokenizer"},
                                   {"separate_vocabs", !shares_vocabulary()},
                                   {"eos_token", kEndPiece},
                                   {"unk_token", kUnknownPiece},
                                   {"pad_token", kPadPiece},
                                   {"model_max_length", kMaxLength}};
  if (!source_language.empty()) config["source_lang"] = source_language;
  if (!target_language.empty()) config["target_lang"] = target_language;
  io::write_json(folder / "tokenizer_config.json", config);
}

// The model's number of a piece. Like other readers of these folders, a piece that the segmentation model
// does not know is still looked up: a shared vocabulary has pieces of the other language. Text that happens
// to spell a special symbol never becomes one.
int32_t Tokenizer::id_of(const Side& side, const Piece& piece) {
  const int32_t id = side.ids[static_cast<size_t>(piece.id)];
  if (id != kLookUp) return id;
  const Vocabulary& vocabulary = *side.vocabulary;
  const int32_t found = vocabulary.id_or_unknown(piece.text);
  return found == vocabulary.end_id() || found == vocabulary.pad_id() ? vocabulary.unknown_id() : found;
}

// The bytes of a leading ">>xxx<<" that the vocabulary has; 0 when there is none.
size_t Tokenizer::language_tag(const Side& side, std::string_view line) {
  if (!line.starts_with(">>")) return 0;
  const size_t close = line.find("<<", 2);
  if (close == std::string_view::npos || !side.vocabulary->find(line.substr(0, close + 2))) return 0;
  return close + 2;
}

EncodedLine Tokenizer::encode(const Side& side, std::string_view line) {
  EncodedLine encoded;
  const size_t tag = language_tag(side, line);
  if (tag > 0) {
    encoded.ids.push_back(side.vocabulary->id_or_unknown(line.substr(0, tag)));
    encoded.spans.push_back({0, static_cast<int64_t>(tag), true});
  }
  bool after_mark = false;
  for (const Piece& piece : side.segmenter.encode(line.substr(tag))) {
    const bool mark_alone = piece.text == kSpaceMark;
    encoded.ids.push_back(id_of(side, piece));
    encoded.spans.push_back({piece.begin + static_cast<int64_t>(tag), piece.end + static_cast<int64_t>(tag),
                             after_mark || (piece.text.starts_with(kSpaceMark) && !mark_alone)});
    after_mark = mark_alone;
  }
  const auto end = static_cast<int64_t>(line.size());
  encoded.ids.push_back(side.vocabulary->end_id());
  encoded.spans.push_back({end, end, false});
  return encoded;
}

EncodedLine Tokenizer::encode_source(std::string_view line) const {
  return encode(source_, line);
}

EncodedLine Tokenizer::encode_target(std::string_view line) const {
  return encode(target_, line);
}

std::vector<int32_t> Tokenizer::encode_ids(const Side& side, std::string_view line) {
  std::vector<int32_t> ids;
  const size_t tag = language_tag(side, line);
  side.segmenter.encode(line.substr(tag), ids);
  bool all_known = true;
  for (int32_t& id : ids) {
    id = side.ids[static_cast<size_t>(id)];
    all_known &= id != kLookUp;
  }
  if (!all_known) {
    ids.clear();
    for (const Piece& piece : side.segmenter.encode(line.substr(tag))) ids.push_back(id_of(side, piece));
  }
  if (tag > 0) ids.insert(ids.begin(), side.vocabulary->id_or_unknown(line.substr(0, tag)));
  ids.push_back(side.vocabulary->end_id());
  return ids;
}

std::vector<int32_t> Tokenizer::encode_source_ids(std::string_view line) const {
  return encode_ids(source_, line);
}

std::vector<int32_t> Tokenizer::encode_target_ids(std::string_view line) const {
  return encode_ids(target_, line);
}

std::string Tokenizer::decode_target(std::span<const int32_t> ids, const UnknownRepair& repair) const {
  require(repair.source == nullptr || repair.aligned_to.size() == ids.size(),
          "{} target ids need as many alignments, not {}", ids.size(), repair.aligned_to.size());
  const Vocabulary& vocabulary = *target_.vocabulary;
  std::vector<std::string> copies;
  copies.reserve(ids.size());  // pieces holds views of them
  std::vector<std::string_view> pieces;
  pieces.reserve(ids.size());
  int64_t copied_from = -1;  // where the neighbour before was copied from
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != vocabulary.unknown_id()) {
      copied_from = -1;
      if (ids[i] != vocabulary.end_id() && ids[i] != vocabulary.pad_id())
        pieces.push_back(vocabulary.piece(ids[i]));
      continue;
    }
    const int64_t from = repair.source != nullptr ? repair.aligned_to[i] : -1;
    std::string_view copy;
    bool starts_word = false;
    if (from >= 0) {
      require(from < static_cast<int64_t>(repair.source->spans.size()),
              "a target piece is aligned to source position {} of {}", from, repair.source->spans.size());
      if (from == copied_from) continue;
      const auto& span = repair.source->spans[static_cast<size_t>(from)];
      copy = trimmed(repair.source_line.substr(static_cast<size_t>(span.begin),
                                               static_cast<size_t>(span.end - span.begin)));
      starts_word = span.starts_word;
    }
    if (copy.empty()) {
      if (!repair.otherwise.empty()) pieces.push_back(repair.otherwise);
      continue;
    }
    copied_from = from;
    const bool has_space = pieces.empty() || pieces.back().ends_with(kSpaceMark);
    copies.push_back((starts_word && !has_space ? std::string(kSpaceMark) : std::string()).append(copy));
    pieces.push_back(copies.back());
  }
  return target_.segmenter.decode(pieces);
}

void Tokenizer::require_fits(int64_t source_size, int64_t target_size, int32_t end_id,
                             const std::filesystem::path& folder) const {
  const std::string_view target_file = shares_vocabulary() ? "vocab.json" : "target_vocab.json";
  const auto check = [&](const Vocabulary& vocabulary, std::string_view file, int64_t size) {
    require(vocabulary.size() == size,
            "{} has {} pieces, but the model has embeddings for {}: the files belong to different models",
            (folder / file).string(), vocabulary.size(), size);
  };
  check(*source_.vocabulary, "vocab.json", source_size);
  check(*target_.vocabulary, target_file, target_size);
  require(
      target_.vocabulary->end_id() == end_id,
      "{} gives </s> the id {}, but the model's sentences end with {} ({} in config.json, eos_token_id): the "
      "files belong to different models",
      (folder / target_file).string(), target_.vocabulary->end_id(), end_id,
      end_id < target_.vocabulary->size() ? target_.vocabulary->piece(end_id) : "no piece");
}

}  // namespace gloss::text
