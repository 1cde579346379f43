#pragma once

#include "measure.hpp"
#include "tables.hpp"

#include <string>
#include <utility>
#include <vector>

namespace ferry_bench {

/// What a gather is measured against: bytes of one call, what they count, and the ceiling.
struct traffic {
  double factor;
  std::string counts;
  std::string ceiling;
};
inline traffic over_the_link() { return {1.0, "payload", "ceiling.h2d"}; }
inline traffic inside_the_device() { return {2.0, "read + write", "ceiling.device_copy"}; }

/// The index sets, each sorted once beforehand.
class plan_sets {
 public:
  plan_sets(session& run, const index_sets& sets, std::int64_t rows) {
    for (int s = 0; s < sets.count(); ++s) plans_.push_back(ferry::make_plan(run.exec(), sets[s], rows));
    run.exec().fence("ferry_bench::plans");
  }
  [[nodiscard]] const ferry::row_plan& operator[](int call) const {
    return plans_[static_cast<std::size_t>(call) % plans_.size()];
  }

 private:
  std::vector<ferry::row_plan> plans_;
};

/// Times gathers from `table` into `batch` by `which[call]`, indices or plans, then poisons the batch, gathers once
/// more and checks every element against `sets`.
template <class Table, class Which, class... Policies>
void time_gather_by(session& run, std::string name, facts setting, const Table& table, const Which& which,
                    const index_sets& sets, batch_tensor& batch, int burst, const traffic& moved,
                    Policies... policies) {
  figure made;
  made.name = std::move(name);
  made.setting =
      std::move(setting) + facts{{"n", static_cast<std::int64_t>(batch.rows())},
                                 {"row_bytes", static_cast<std::int64_t>(batch.width() * sizeof(float))},
                                 {"burst", std::int64_t{burst}}};
  made.bytes = static_cast<double>(batch.size() * sizeof(float)) * moved.factor;
  made.counts = moved.counts;
  made.ceiling = run.ceiling(moved.ceiling);
  made.time = measure(run, burst, [&](int call) {
    return ferry::gather(run.exec(), table, which[call], batch, policies...);
  });
  ferry::init::custom(run.exec(), batch, poison_value{});
  ferry::gather(run.exec(), table, which[1], batch, policies...).wait();
  conclude(run, made, wrong_rows(run, batch, sets[1]));
}

template <class Table, class... Policies>
void time_gather(session& run, std::string name, facts setting, const Table& table, const index_sets& sets,
                 batch_tensor& batch, int burst, const traffic& moved, Policies... policies) {
  time_gather_by(run, std::move(name), std::move(setting), table, sets, sets, batch, burst, moved,
                 policies...);
}

}  // namespace ferry_bench
