// A small model with random weights and the vocabulary of a few sentences, as a folder and opened.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gloss/decode/translator.h"
#include "gloss/models/model_folder.h"
#include "gloss/models/transformer_model.h"
#include "gloss/text/training.h"

namespace gloss::decode {

class SmallTranslator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("gloss-translator-{}", ::getpid());
    std::filesystem::create_directories(folder_);
    const std::filesystem::path text = folder_ / "text.txt";
    std::ofstream(text)
        << "The cat sat on the mat. It was a black cat.\nA dog ran over the hill and far away.\n"
           "Who let the dogs out? Nobody knows.\nOne, two, three, four, five, six, seven.\n";
    text::TokenizerOptions options;
    options.vocabulary_size = 60;
    const auto tokenizer = text::train_tokenizer(text, text, options).tokenizer;
    tokenizer.save(folder_);
    Arena arena;
    models::TransformerConfig config;
    config.source_vocabulary = config.target_vocabulary = tokenizer.source_vocabulary().size();
    config.d_model = 16;
    config.encoder = config.decoder = {2, 2, 32};
    const text::Vocabulary& vocabulary = tokenizer.source_vocabulary();
    config.symbols = {vocabulary.end_id(), vocabulary.pad_id(), vocabulary.pad_id()};
    models::TransformerModel model(config, arena);
    model.initialise(3);
    models::save_model(folder_, model);
    translator_ = std::make_unique<Translator>(folder_);
  }
  static void TearDownTestSuite() {
    translator_.reset();
    std::filesystem::remove_all(folder_);
  }
  static TranslateOptions short_options() {
    TranslateOptions options;
    options.search.beam = 2;
    options.search.max_length = 8;
    options.search.batch = 4;
    return options;
  }
  static inline std::filesystem::path folder_;
  static inline std::unique_ptr<Translator> translator_;
};

}  // namespace gloss::decode
