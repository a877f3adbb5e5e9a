#include "gloss/train/schedule.h"

#include <gtest/gtest.h>

#include "gloss/train/limits.h"

namespace gloss::train {
namespace {

TEST(LearningRate, RisesInALineThenFallsWithTheRoot) {
  TrainOptions options;
  options.learning_rate = 0.002;
  options.warmup = 1000;
  EXPECT_DOUBLE_EQ(learning_rate(options, 1), 0.002 / 1000);
  EXPECT_DOUBLE_EQ(learning_rate(options, 500), 0.001);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1000), 0.002);
  EXPECT_DOUBLE_EQ(learning_rate(options, 4000), 0.001);
  options.warmup = 1;
  EXPECT_DOUBLE_EQ(learning_rate(options, 1), 0.002);
}

// "Attention Is All You Need", equation 3, with its base model: d_model 512, warmup 4000.
TEST(LearningRate, IsThePapersByName) {
  TrainOptions options;
  options.schedule = Schedule::paper;
  options.learning_rate = 1;
  options.d_model = 512;
  options.warmup = 4000;
  EXPECT_NEAR(learning_rate(options, 1), 1.7469281e-7, 1e-13);
  EXPECT_NEAR(learning_rate(options, 4000), 6.9877124e-4, 1e-10);
  EXPECT_NEAR(learning_rate(options, 100000), 1.3975425e-4, 1e-10);
  options.learning_rate = 2;
  EXPECT_NEAR(learning_rate(options, 4000), 2 * 6.9877124e-4, 1e-10);
}

TEST(AverageDecay, GrowsToWhatWasAskedFor) {
  TrainOptions options;
  options.ema = 0.99;
  EXPECT_DOUBLE_EQ(average_decay(options, 1), 2.0 / 11);
  EXPECT_DOUBLE_EQ(average_decay(options, 90), 0.91);
  EXPECT_DOUBLE_EQ(average_decay(options, 100'000), 0.99);
}

TEST(Limits, EndARunByTheFirstThatIsReached) {
  TrainOptions options;
  options.patience = 0;
  Progress progress;
  progress.update = 1'000'000;
  progress.position.epoch = 1000;
  progress.bad_validations = 1000;
  EXPECT_FALSE(reached_limit(options, progress, 1e9)) << "every limit can be switched off";
  options.patience = 3;
  progress.bad_validations = 2;
  EXPECT_FALSE(reached_limit(options, progress, 0));
  progress.bad_validations = 3;
  EXPECT_EQ(reached_limit(options, progress, 0), "after 3 validations without progress (--patience)");
  options.minutes = 2;
  EXPECT_EQ(reached_limit(options, progress, 119.9), "after 3 validations without progress (--patience)");
  EXPECT_EQ(reached_limit(options, progress, 120), "after 2 minutes (--minutes)");
  options.max_epochs = 1000;
  EXPECT_EQ(reached_limit(options, progress, 120), "after 1000 epochs (--max-epochs)");
  options.max_updates = 1'000'000;
  EXPECT_EQ(reached_limit(options, progress, 120), "after 1000000 updates (--max-updates)");
  options.max_updates = 1'000'001;
  EXPECT_EQ(reached_limit(options, progress, 120), "after 1000 epochs (--max-epochs)");
}

TEST(Limits, ForeseeTheNearestEnd) {
  TrainOptions options;
  Progress progress;
  progress.update = 100;
  EXPECT_FALSE(seconds_left(options, progress, 50, 10)) << "early stopping cannot be foreseen";
  options.max_updates = 400;
  EXPECT_DOUBLE_EQ(*seconds_left(options, progress, 50, 0), 150);
  options.minutes = 2;
  EXPECT_DOUBLE_EQ(*seconds_left(options, progress, 50, 0), 70);
  options.max_epochs = 10;
  progress.position.epoch = 4;
  progress.position.batch = 10;
  EXPECT_DOUBLE_EQ(*seconds_left(options, progress, 50, 0), 70) << "the length of an epoch is unknown";
  EXPECT_DOUBLE_EQ(*seconds_left(options, progress, 50, 10), 50);
  EXPECT_DOUBLE_EQ(*seconds_left(options, progress, 500, 10), 0) << "never below nothing";
}

TEST(Limits, WriteDurationsForPeople) {
  EXPECT_EQ(duration_text(0), "0m00s");
  EXPECT_EQ(duration_text(59.9), "0m59s");
  EXPECT_EQ(duration_text(200), "3m20s");
  EXPECT_EQ(duration_text(3900), "1h05m");
}

}  // namespace
}  // namespace gloss::train
