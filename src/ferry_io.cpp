// SPDX-License-Identifier: Apache-2.0
// ferry::io as one source, for builds without CMake, next to ferry.cpp: files and loaders. They need ISA-L and
// nlohmann-json.
#if !defined(FERRY_DISPATCH_AVX2)
#define FERRY_DISPATCH_AVX2 1
#endif

#include "io/checkpoint.cpp"
#include "io/checkpoint_entry.cpp"
#include "io/checkpoint_folder.cpp"
#include "io/checkpoint_save.cpp"
#include "io/manifest.cpp"
#include "io/npy_header.cpp"
#include "io/read_array.cpp"
#include "io/safetensors.cpp"
#include "io/state_entry.cpp"
#include "io/stream_rows.cpp"
#include "io/variable_entry.cpp"
#include "loader/batches.cpp"
#include "loader/copy_stream.cpp"
#include "loader/pipeline.cpp"
#include "loader/row_pipeline.cpp"
