#include "support/measure.hpp"
#include "support/tables.hpp"

#include <unordered_map>

namespace ferry_bench {
namespace {

/// The batch holds its own formula, so that its rows are told apart from the table's.
constexpr std::uint64_t batch_salt = 1;

/// For each position the last one that names the same row: whose values duplicates::last leaves there.
row_indices winners(const session& run, const row_indices& rows) {
  const auto listed = to_host(rows);
  std::unordered_map<std::int64_t, std::int64_t> last;
  last.reserve(listed.size());
  for (std::size_t p = 0; p < listed.size(); ++p) last[listed[p]] = static_cast<std::int64_t>(p);
  std::vector<std::int64_t> winner(listed.size());
  for (std::size_t p = 0; p < listed.size(); ++p) winner[p] = last[listed[p]];
  row_indices there("winners", winner.size());
  ferry::copy(run.exec(), winner, there).wait();
  return there;
}

template <class Table, class... Policies>
void time_scatter(session& run, const std::string& name, const facts& setting, const Table& table,
                  const index_sets& sets, const batch_tensor& batch, int burst, double factor,
                  const std::string& ceiling, Policies... policies) {
  figure made;
  made.name = name;
  made.setting = setting + facts{{"n", static_cast<std::int64_t>(batch.rows())},
                                 {"row_bytes", static_cast<std::int64_t>(batch.width() * sizeof(float))},
                                 {"burst", std::int64_t{burst}}};
  made.bytes = static_cast<double>(batch.size() * sizeof(float)) * factor;
  made.counts = factor > 1 ? "read + write" : "payload";
  made.ceiling = run.ceiling(ceiling);
  made.time = measure(run, burst, [&](int call) {
    return ferry::scatter(run.exec(), table, sets[call], batch, policies...);
  });
  // The table's own formula is put back, so that the rows of the last call can only have come from it.
  ferry::init::custom(run.exec(), table, element_value{static_cast<std::int64_t>(batch.width())});
  const row_indices& rows = sets[1];
  ferry::scatter(run.exec(), table, rows, batch, policies...).wait();
  const auto winner = winners(run, rows);
  conclude(run, made,
           count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(batch.size()),
                    wrong_scattered{table.data(), rows.data(), winner.data(),
                                    element_value{static_cast<std::int64_t>(batch.width()), batch_salt}}));
}

/// The promise that no row is named twice, with and without the look at the bounds, and the default, which
/// sorts.
template <class Table>
void time_all(session& run, const std::string& name, const facts& setting, const Table& table, std::int64_t n,
              int burst, double factor, const std::string& ceiling) {
  using unique = ferry::duplicates::assume_unique;
  batch_tensor batch("batch", n, table.width());
  ferry::init::custom(run.exec(), batch, element_value{static_cast<std::int64_t>(table.width()), batch_salt});
  const auto distinct = index_sets::make<distinct_row>(run, n, table.rows());
  time_scatter(run, name + ".unique_unchecked", setting, table, distinct, batch, burst, factor, ceiling,
               unique{}, ferry::bounds::unchecked{});
  time_scatter(run, name + ".unique", setting, table, distinct, batch, burst, factor, ceiling, unique{});
  const auto any = index_sets::make<any_row>(run, n, table.rows());
  time_scatter(run, name + ".last", setting, table, any, batch, burst, factor, ceiling);
}

void scatter_mapped(session& run) {
  filled_table<ferry::mapped_space> table(run, run.host_table_bytes());
  for (const std::int64_t row_bytes : run.chosen().rows_bytes)
    time_all(run, "scatter.mapped." + bytes_text(row_bytes), table.setting(), table.rows_of(row_bytes),
             run.chosen().n, 1, 1.0, "ceiling.d2h");
}

void scatter_step_batch(session& run) {
  const auto row_bytes = run.chosen().width * 4;
  filled_table<ferry::device_space> table(run, static_cast<std::size_t>(run.chosen().step_rows * row_bytes));
  time_all(run, "scatter.device.step_batch", table.setting(), table.rows_of(row_bytes), run.chosen().step_n,
           16, 2.0, "ceiling.device_copy");
}

const registration mapped{"scatter.mapped", scatter_mapped};
const registration device{"scatter.device.step_batch", scatter_step_batch};

}  // namespace
}  // namespace ferry_bench
