// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

// For compilers without libFuzzer: runs the files of the command line, then that number of mutations of them.
//
//   PROGRAM -runs=N [-seed=S] FILE...

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using bytes = std::vector<std::uint8_t>;

/// Words of the formats, which random bytes would not find.
const std::vector<std::string> words{"'descr'",
                                     "'<f4'",
                                     "True",
                                     "False",
                                     "'shape'",
                                     "(3,)",
                                     "()",
                                     "[",
                                     "]",
                                     "{",
                                     "}",
                                     "\"",
                                     "\\u",
                                     "dtype",
                                     "\"F32\"",
                                     "\"F4\"",
                                     "shape",
                                     "data_offsets",
                                     "[0,4]",
                                     "__metadata__",
                                     "18446744073709551615",
                                     "9223372036854775807",
                                     "0",
                                     "\xff",
                                     "('a','<f4',(2,)),",
                                     "'|V0'",
                                     ",",
                                     " "};

void mutate(bytes& input, const std::vector<bytes>& corpus, std::mt19937_64& random) {
  const auto below = [&](std::size_t most) { return most == 0 ? 0 : random() % most; };
  for (std::size_t times = 1 + below(6); times > 0; --times) {
    const std::size_t position = below(input.size() + 1);
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(position);
    const auto some = std::min<std::size_t>(below(16), input.size() - position);
    switch (random() % 7) {
      case 0:
        if (position < input.size()) input[position] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (position < input.size()) input[position] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        input.erase(place, place + static_cast<std::ptrdiff_t>(some));
        break;
      case 3: {
        const std::string& word = words[below(words.size())];
        input.insert(place, word.begin(), word.end());
        break;
      }
      case 4: {  // over what is there, so that lengths stay right
        const std::string& word = words[below(words.size())];
        for (std::size_t i = 0; i < word.size() && position + i < input.size(); ++i)
          input[position + i] = static_cast<std::uint8_t>(word[i]);
        break;
      }
      case 5: {
        const bytes& second = corpus[below(corpus.size())];
        const std::size_t start = below(second.size() + 1);
        const auto begin = second.begin() + static_cast<std::ptrdiff_t>(start);
        const bytes piece(begin, begin + static_cast<std::ptrdiff_t>(
                                             std::min<std::size_t>(below(64), second.size() - start)));
        input.insert(place, piece.begin(), piece.end());
        break;
      }
      default:
        input.resize(below(2) == 0 ? position : input.size() + below(64));
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 0;
  std::uint64_t seed = std::random_device{}();
  std::vector<bytes> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("-runs=")) {
      runs = std::strtoull(argument.c_str() + 6, nullptr, 10);
    } else if (argument.starts_with("-seed=")) {
      seed = std::strtoull(argument.c_str() + 6, nullptr, 10);
    } else {
      std::ifstream file(argument, std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "can't read %s\n", argument.c_str());
        return 2;
      }
      corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  if (corpus.empty()) corpus.emplace_back();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  for (const bytes& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  std::mt19937_64 random(seed);
  bytes input;
  for (std::uint64_t run = 0; run < runs; ++run) {
    if (run % 8 == 0) input = corpus[random() % corpus.size()];
    mutate(input, corpus, random);
    if (input.size() > 1u << 16) input.resize(1u << 16);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(runs + corpus.size()));
  return 0;
}
