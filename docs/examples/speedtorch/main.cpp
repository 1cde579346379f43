// SPDX-License-Identifier: Apache-2.0
// SpeedTorch's word-embedding loop on ferry: two tables in host memory, of which a batch's rows visit the
// device, SparseAdam on them, and the loss written every few batches. See README.md.

#include "../skipgram/corpus.hpp"
#include "../skipgram/epoch_pairs.hpp"
#include "../skipgram/options.hpp"
#include "../skipgram/sampling.hpp"
#include "kernels.hpp"

#include <ferry/compat/speedtorch.hpp>
#include <ferry/io.hpp>

#include <CLI/CLI.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace word_embeddings;
using execution = Kokkos::DefaultExecutionSpace;
using model_type = ferry::speedtorch::model_factory<float, ferry::pinned_space>;

struct settings {
  std::string text, dump, curve, compare;
  std::size_t batches = 600, every = 50, dim = 64, batch = 512, negatives = 5;
  double lr = 1e-2;
  std::uint64_t seed = 1;
};

/// Noise words by count^(3/4), drawn on the host: a function of the seed and the position.
class noise_words {
 public:
  explicit noise_words(const std::vector<std::uint64_t>& counts) : up_to_(counts.size()) {
    double sum = 0.0;
    for (std::size_t w = 0; w < counts.size(); ++w)
      up_to_[w] = sum += std::pow(static_cast<double>(counts[w]), 0.75);
  }
  [[nodiscard]] std::int32_t draw(std::uint64_t seed, std::uint64_t position) const {
    const auto random = skipgram::random_bits(seed, skipgram::purpose::noise, 1, position);
    const double draw = ferry::random::unit(random.word[0], random.word[1]) * up_to_.back();
    return static_cast<std::int32_t>(std::upper_bound(up_to_.begin(), up_to_.end() - 1, draw) -
                                     up_to_.begin());
  }

 private:
  std::vector<double> up_to_;
};

struct point {
  std::size_t batches;
  double loss;
};

/// The points of a curve file: a first line about the text, a line of names, then "batches,loss".
std::vector<point> read_curve(const std::string& file, std::string& text) {
  std::ifstream input(file);
  std::vector<point> curve;
  std::string line;
  if (!std::getline(input, text)) throw std::runtime_error("cannot read '" + file + "'");
  for (std::getline(input, line); std::getline(input, line);) {
    std::istringstream fields(line);
    point next{};
    char comma = 0;
    if (fields >> next.batches >> comma >> next.loss) curve.push_back(next);
  }
  return curve;
}

template <class T>
void save(const settings& chosen, const char* name, const std::vector<T>& numbers, std::size_t width) {
  ferry::tensor<T, ferry::pageable_space> copy(name, numbers.size() / width, width);
  std::copy(numbers.begin(), numbers.end(), copy.data());
  ferry::io::save_npy(chosen.dump + "/" + name + ".npy", copy);
}

int run(const settings& chosen) {
  skipgram::options how;
  how.batch = chosen.batch;
  how.seed = chosen.seed;
  how.held_out = 0.0;
  const auto text = chosen.text.empty() ? skipgram::read_wordnet("/usr/share/wordnet", how.min_count)
                                        : skipgram::read_text(chosen.text, how.min_count);
  const std::size_t words = text.words.size();
  const std::string about = "# " + std::to_string(text.tokens.size()) + " words of " + std::to_string(words) +
                            ", " + std::to_string(chosen.batch) + " pairs a batch, dim " +
                            std::to_string(chosen.dim) + ", SparseAdam lr " + std::to_string(chosen.lr);
  std::vector<point> torch;
  if (!chosen.compare.empty()) {
    std::string theirs;
    torch = read_curve(chosen.compare, theirs);
    if (theirs != about) {
      std::printf("%s is of another run: '%s', this is '%s'\n", chosen.compare.c_str(), theirs.c_str(),
                  about.c_str());
      return 77;
    }
  }

  const execution exec;
  model_type u("u_embeddings", words, chosen.dim), v("v_embeddings", words, chosen.dim);
  const double spread = 0.5 / static_cast<double>(chosen.dim);
  // Drawn in double and rounded, as the start of PyTorch's curve was; u.uniform_distribution_init draws in float.
  ferry::tensor<double, ferry::pinned_space> start("start", words, chosen.dim);
  ferry::init::uniform(exec, start, -spread, spread, chosen.seed);
  ferry::copy(exec, start, u.table()).wait();
  v.zeros_init(exec);
  const ferry::optim::sparse_adam rule{.lr = chosen.lr};
  ferry::speedtorch::optimizer_factory u_adam(rule, u), v_adam(rule, v);
  const noise_words noise(text.counts);
  if (!chosen.dump.empty()) {
    std::filesystem::create_directories(chosen.dump);
    u.save(chosen.dump + "/u.npy");
    std::ofstream(chosen.dump + "/about.txt") << about << "\n";
  }

  const std::size_t n = chosen.batch, k = chosen.negatives, dim = chosen.dim;
  ferry::tensor<float, device_space> u_pairs("u_pairs", n, dim), context_pairs("context_pairs", n, dim),
      noise_pairs("noise_pairs", n * k, dim), u_sums("u_sums", n, dim), v_sums("v_sums", n * (k + 1), dim);
  ferry::tensor<double, device_space> losses("losses", n);
  std::vector<std::int32_t> centres(n), contexts(n), all_centres, all_contexts, all_noise,
      noise_of_batch(n * k);
  std::vector<point> curve;
  double sum = 0.0;
  std::size_t count = 0;
  for (std::uint64_t epoch = 1; count < chosen.batches; ++epoch) {
    const skipgram::epoch_pairs pairs(text, how, skipgram::part::training, epoch,
                                      static_cast<std::int64_t>((chosen.batches - count) * n));
    for (std::size_t first = 0; first + n <= static_cast<std::size_t>(pairs.size()); first += n) {
      pairs.fill(static_cast<std::int64_t>(first), centres, contexts);
      for (std::size_t i = 0; i < n * k; ++i) noise_of_batch[i] = noise.draw(chosen.seed, count * n * k + i);

      u.before_forward_pass(exec, centres).wait();
      v.before_forward_pass(exec, contexts, noise_of_batch).wait();
      using range = Kokkos::RangePolicy<execution, Kokkos::IndexType<std::int64_t>>;
      const range each_pair(exec, 0, static_cast<std::int64_t>(n));
      Kokkos::parallel_for("word_embeddings::pair_gradients", each_pair,
                           pair_gradients{u.weight().view(), v.weight().view(), u.positive_inputs().data(),
                                          v.positive_inputs().data(), v.negative_inputs().data(),
                                          u_pairs.view(), context_pairs.view(), noise_pairs.view(),
                                          losses.view(), static_cast<std::int64_t>(k)});
      double loss = 0.0;
      Kokkos::parallel_reduce("word_embeddings::sum_losses", each_pair, sum_losses{losses.view()}, loss);
      sum += loss / static_cast<double>(n);

      const auto u_rows = u_sums.first(u.weight().rows()), v_rows = v_sums.first(v.weight().rows());
      ferry::init::zeros(exec, u_rows);
      ferry::init::zeros(exec, v_rows);
      ferry::scatter_add(exec, u_rows, u.positive_inputs(), u_pairs).wait();
      ferry::scatter_add(exec, v_rows, v.positive_inputs(), context_pairs).wait();
      ferry::scatter_add(exec, v_rows, v.negative_inputs(), noise_pairs).wait();
      u_adam.step(exec, u_rows).wait();
      v_adam.step(exec, v_rows).wait();

      if (!chosen.dump.empty()) {
        all_centres.insert(all_centres.end(), centres.begin(), centres.end());
        all_contexts.insert(all_contexts.end(), contexts.begin(), contexts.end());
        all_noise.insert(all_noise.end(), noise_of_batch.begin(), noise_of_batch.end());
      }
      if (++count % chosen.every == 0) {
        curve.push_back({count, sum / static_cast<double>(chosen.every)});
        std::printf("%zu,%.6f\n", count, curve.back().loss);
        std::fflush(stdout);
        sum = 0.0;
      }
    }
    if (epoch > chosen.batches) throw std::runtime_error("the text has fewer pairs than a batch");
  }

  if (!chosen.dump.empty()) {
    save(chosen, "centres", all_centres, n);
    save(chosen, "contexts", all_contexts, n);
    save(chosen, "noise", all_noise, n * k);
  }
  if (!chosen.curve.empty()) {
    std::ofstream out(chosen.curve);
    out << about << "\nbatches,loss\n";
    for (const point& entry : curve) out << entry.batches << ',' << entry.loss << "\n";
  }
  double worst = 0.0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < std::min(curve.size(), torch.size()); ++i, ++compared)
    worst = std::max(worst, std::abs(curve[i].loss / torch[i].loss - 1.0));
  if (chosen.compare.empty()) return 0;
  std::printf("PyTorch's curve: %zu points, the largest difference is %.2g of the loss\n", compared, worst);
  return compared > 0 && worst < 1e-3 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  CLI::App app{"Word embeddings by SpeedTorch's loop on ferry"};
  app.add_option("text", chosen.text, "a UTF-8 text; without one, the glosses of WordNet");
  app.add_option("--batches", chosen.batches, "batches to train on")->check(CLI::PositiveNumber);
  app.add_option("--every", chosen.every, "batches of a point of the curve")->check(CLI::PositiveNumber);
  app.add_option("--batch", chosen.batch, "pairs of words in a batch")->check(CLI::PositiveNumber);
  app.add_option("--dim", chosen.dim, "width of the tables")->check(CLI::PositiveNumber);
  app.add_option("--negatives", chosen.negatives, "noise words of a pair")->check(CLI::PositiveNumber);
  app.add_option("--lr", chosen.lr, "learning rate of SparseAdam")->check(CLI::PositiveNumber);
  app.add_option("--seed", chosen.seed, "seed of all random decisions");
  app.add_option("--dump", chosen.dump, "folder for the first weights and the batches, for torch_curve.py");
  app.add_option("--curve", chosen.curve, "file for the losses");
  app.add_option("--compare", chosen.compare, "a curve of PyTorch's that the losses must follow");
  CLI11_PARSE(app, argc, argv);
  try {
    const Kokkos::ScopeGuard kokkos;
    return run(chosen);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "word_embeddings: %s\n", problem.what());
    return 1;
  }
}
