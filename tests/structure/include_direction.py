#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the compiler cannot: which capability may include which, and what a header may not name.

    include_direction.py ROOT         checks the files under ROOT/include/ferry, ROOT/src and ROOT/backends
    include_direction.py --fence ROOT prints what tests/structure/fence would have to list
    include_direction.py --self-test  feeds broken files to every rule and expects each to be refused
"""

import re
import sys
import tempfile
from pathlib import Path

# A capability is a folder: public headers on top, the rest in detail/, and its sources in the folder of src/ with its name,
# whose headers count as detail. Each may include what comes before it in LAYERS; those of one line don't know each other.
LAYERS = [
    ("concepts",),
    ("policy", "memory"),
    ("tensor",),
    ("runtime",),
    ("profile",),
    ("plan",),
    ("rows",),
    ("quantized", "calibrate"),
    ("optim",),  # steps on 8-bit rows, too
    ("bags",),  # step_bags is a step
    ("cache", "interop"),
    ("extend.hpp",),  # what other libraries build on
    ("io", "loader"),
    ("compat",),  # saves and loads files
    ("distributed/communicator",),
    ("distributed/shared",),
    ("distributed/collectives",),
    ("distributed/sharded",),  # saves and loads shards
    ("distributed",),  # opt-in headers that need another library
]
# The libraries beside the main one, whose capabilities stand last in LAYERS. tests/structure/fence lists the headers below
# detail/ that one may include from another, and no other one may.
COMPONENTS = {"io": ("io", "loader", "compat"), "distributed": ("distributed",)}
MAY_USE = {"main": (), "io": ("main",), "distributed": ("main", "io")}
FENCE = "tests/structure/fence"
# capability -> the others of its component whose detail/ it may include.
OPEN_TO = {
    "tensor": {"memory"},
    "runtime": {"memory", "tensor"},
    "profile": {"memory", "tensor", "runtime"},
    "plan": {"memory", "tensor", "runtime"},
    "rows": {"memory", "tensor", "runtime", "profile", "plan"},
    "quantized": {"tensor", "runtime", "plan", "rows"},
    "calibrate": {"memory", "runtime", "profile", "plan"},
    "optim": {"memory", "tensor", "runtime", "plan", "rows", "quantized"},
    "bags": {"memory", "tensor", "runtime", "plan", "rows", "quantized", "optim"},
    "interop": {"memory", "tensor", "runtime"},
    "cache": {"memory", "tensor", "runtime", "profile", "plan", "rows", "quantized", "optim", "bags"},
    "distributed/collectives": {"distributed/communicator", "distributed/shared"},
    "distributed/shared": {"distributed/communicator"},
    "distributed/sharded": {"distributed/communicator", "distributed/shared"},
    "distributed": {"distributed/communicator", "distributed/collectives"},
    "backends": {"memory", "runtime"},
    "instances": {"plan"},
    "extend.hpp": {"memory", "tensor", "runtime", "plan", "rows", "optim"},
    "umbrella": {"tensor", "runtime", "plan"},  # sentences that refuse calls come first
}
SUBFOLDERS = {"detail", "quantizations", "rules", "shardings", "transforms"}
# A capability of several parts, which are areas of their own: distributed/sharded.
PARTS = {area.split("/")[0]: {other.split("/")[1] for layer in LAYERS for other in layer if other.startswith(area.split("/")[0] + "/")}
         for layer in LAYERS for area in layer if "/" in area}

ALLOWED = {}
for layer in LAYERS:
    below = set(ALLOWED)
    ALLOWED.update({area: set(below) for area in layer})
ALLOWED["backends"] = {"concepts", "memory", "runtime"}
ALLOWED["instances"] = {area for area in ALLOWED if area.split("/")[0] not in sum(COMPONENTS.values(), ())} | {"umbrella"}
ALLOWED["umbrella"] = set(ALLOWED)
PLAIN = {"error.hpp", "version.hpp"}
UMBRELLAS = {"ferry.hpp", "bags.hpp", "cache.hpp", "calibrate.hpp", "compat.hpp", "distributed.hpp", "int8.hpp", "quantized.hpp", "interop.hpp", "io.hpp",
             "loader.hpp", "ferry.cpp", "ferry_io.cpp", "ferry_distributed.cpp"}

LONGEST_HEADER = 300
WIDEST_COMMENT = 110
# Folders and headers whose comments may be wider.
MAY_BE_WIDE = ()
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

EVERYWHERE = [
    (re.compile(r"\bKOKKOS_(CLASS_)?LAMBDA\b"), "has an extended lambda; kernels are named functors"),
    (re.compile(r"\bKokkos::fence\s*\("), "fences globally; wait on the execution space instance"),
]
AGNOSTIC = [
    (re.compile(r"KOKKOS_ENABLE_"), "asks which backends are enabled; that belongs to backends/enabled.hpp"),
    (re.compile(r"\bcuda[A-Z_]"), "names a CUDA function or type; that belongs to backends/cuda"),
    (re.compile(r"Kokkos::Impl"), "uses the inside of Kokkos"),
    (re.compile(r"#[ \t]*include[ \t]*<(cub/|cuda|thrust)"), "includes a vendor's header"),
]
BACKEND_SWITCH = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)\b.*KOKKOS_ENABLE_", re.MULTILINE)
EIGEN = re.compile(r"#[ \t]*include[ \t]*<(unsupported/)?Eigen/")


def area_of(path, root):
    """The area of a file, None for a plain one."""
    parts = path.relative_to(root).parts
    if parts[0] == "backends":
        return "backends"
    inside = parts[1:] if parts[0] == "src" else parts[2:]
    if len(inside) > 2 and inside[1] in PARTS.get(inside[0], ()):
        return "/".join(inside[:2])
    if len(inside) > 1:
        return inside[0]
    if inside[0] in PLAIN or inside[0] == "error.cpp":
        return None
    return "umbrella" if inside[0] in UMBRELLAS else inside[0]


def target_of(path, quote, name, root):
    """The header of this project that an include line means, None where it means someone else's."""
    if quote == '"':
        sibling = (path.parent / name).resolve()
        if sibling.is_relative_to(root):
            # "backends/..." in the umbrella header is the installed place of the same file.
            installed = root / name
            return installed if not sibling.exists() and name.startswith("backends/") else sibling
    if name.startswith("ferry/backends/"):
        return root / name[len("ferry/"):]
    return root / "include" / name if name.startswith("ferry/") else None


def component_of(area, path):
    """The library that a file belongs to. An umbrella belongs to that of the capability with its name, src/ferry_io.cpp to io."""
    name = path.stem.removeprefix("ferry_") if area == "umbrella" else (area or "").split("/")[0]
    return next((component for component, folders in COMPONENTS.items() if name in folders), "main")


def is_inside(path, root):
    """True for files that only their own capability and those of OPEN_TO include."""
    return "detail" in path.parts or path.is_relative_to(root / "src")


def read_fence(root):
    """The lines of the fence, (component, header)."""
    lines = (root / FENCE).read_text(encoding="utf-8").split("\n") if (root / FENCE).exists() else []
    return {tuple(line.split()) for line in lines if line and not line.startswith("#")}


def check_includes(path, text, root, crossings):
    """Complaints about the includes of a file. Adds to `crossings` what it includes from inside another component."""
    area = area_of(path, root)
    if area is not None and area not in ALLOWED:
        return [f"lies outside the capabilities of include/ferry ({area})"]
    component, in_source = component_of(area, path), path.is_relative_to(root / "src")
    found = []
    for quote, name in INCLUDE.findall(text):
        target = target_of(path, quote, name, root)
        if target is None:
            continue
        if not any(target.is_relative_to(root / base) for base in ("include/ferry", "backends", "src")) or (
                target.is_relative_to(root / "src") and not in_source and path.suffix == ".hpp"):
            found.append(f"includes {name}, which is not a header of the library")
            continue
        other = area_of(target, root)
        if other is None or other == area:
            continue
        if in_source and other == "backends" and area != "umbrella":
            if target.parent != root / "backends":
                found.append(f"includes {name}: sources include only what lies directly in backends/")
            continue
        owner = component_of(other, target)
        if owner != component and owner not in MAY_USE[component]:
            found.append(f"includes {name}: {component} may not use {owner}")
        elif is_inside(target, root) and owner != component and area != "umbrella":
            crossings.add((component, target.relative_to(root).as_posix()))
        elif area is not None and is_inside(target, root) and other in ALLOWED.get(area, ()) and not (in_source and area == "umbrella"):
            if other != "backends" and other not in OPEN_TO.get(area, ()):
                found.append(f"includes {name}: {area} may include nothing from {other}/detail")
        if area is None:
            found.append(f"is a plain header and includes {name}")
        elif other not in ALLOWED[area]:
            found.append(f"includes {name}: {area} may include only {', '.join(sorted(ALLOWED[area])) or 'itself'}")
    return found


def check_comments(path, text, root):
    """Wide comments. Code is clang-format's business, and a message is one literal of any length."""
    place = path.relative_to(root).as_posix()
    if any(place == wide or place.startswith(wide + "/") for wide in MAY_BE_WIDE):
        return []
    lines = enumerate(text.split("\n"), start=1)
    wide = [number for number, line in lines if len(line) > WIDEST_COMMENT and "//" in STRING.sub("", line)]
    return [f"has a comment wider than {WIDEST_COMMENT} columns in line {number}" for number in wide]


def check_source(path, root, crossings):
    text = path.read_text(encoding="utf-8")
    return [f"{path.relative_to(root)} {message}" for message in check_includes(path, text, root, crossings)]


def check_header(path, root, crossings):
    text = path.read_text(encoding="utf-8")
    found = check_includes(path, text, root, crossings)
    in_backends = path.is_relative_to(root / "backends")
    if not in_backends:
        folders = path.relative_to(root).parts[3:-1]
        if folders and "/" in (area_of(path, root) or ""):
            folders = folders[1:]
        if len(folders) > 1 or not SUBFOLDERS.issuperset(folders):
            found.append(f"lies in {'/'.join(folders)}; below a capability there may be {', '.join(sorted(SUBFOLDERS))}")
    bans = EVERYWHERE if in_backends else EVERYWHERE + AGNOSTIC
    found += [message for pattern, message in bans if pattern.search(text)]
    if in_backends and path.parent != root / "backends" and BACKEND_SWITCH.search(text):
        found.append("switches on KOKKOS_ENABLE_*; only a file directly in backends/ may")
    if EIGEN.search(text) and area_of(path, root) != "interop":
        found.append("includes Eigen; only interop may")
    found += check_comments(path, text, root)
    lines = text.count("\n") - text.count("// SPDX-License-Identifier:")
    if lines > LONGEST_HEADER:
        found.append(f"has {lines} lines; {LONGEST_HEADER} are the most")
    if "#pragma once" not in text:
        found.append("has no #pragma once")
    return [f"{path.relative_to(root)} {message}" for message in found]


def check_backends_match(root):
    """CUDA's backend has a header of each name. Another one takes common.hpp's part where it has none, and what lies in a
    folder of its own is its own."""
    folders = sorted(folder for folder in (root / "backends").glob("*") if folder.is_dir())
    names = {folder.name: {file.name for file in folder.glob("*.hpp")} for folder in folders}
    whole = names.pop("cuda", set())
    return [f"backends/{backend} has {name}, of which backends/cuda has no tuned form" for backend in names
            for name in sorted(names[backend] - whole)]


def check_fence(root, crossings):
    fence = read_fence(root)
    return ([f"{component} includes {header}, which lies inside another component; {FENCE} does not list it"
             for component, header in sorted(crossings - fence)] +
            [f"{FENCE} lists {' '.join(line)}, which nothing includes any more; take the line out"
             for line in sorted(fence - crossings)])


def check(root, crossings=None):
    root, crossings = Path(root).resolve(), set() if crossings is None else crossings
    headers = sorted((root / "include" / "ferry").rglob("*.hpp")) + sorted((root / "backends").rglob("*.hpp"))
    sources = sorted((root / "src").rglob("*.[ch]pp")) + sorted((root / "backends").rglob("*.cpp"))
    if not headers:
        return [f"{root} holds no headers"], 0
    found = [line for header in headers for line in check_header(header, root, crossings)]
    found += [line for source in sources for line in check_source(source, root, crossings)]
    return found + check_fence(root, crossings) + check_backends_match(root), len(headers) + len(sources)


GOOD = {
    "include/ferry/version.hpp": "// " + "-" * 107 + "\nconstexpr auto message = \"//" + "-" * 110 + "\";\n",
    "include/ferry/concepts/space.hpp": "#include <ferry/version.hpp>\n#include <concepts>\n",
    "include/ferry/memory/pool.hpp": '#include "../concepts/space.hpp"\n#include <ferry/memory/detail/block.hpp>\n',
    "include/ferry/memory/detail/block.hpp": "",
    "include/ferry/tensor/view.hpp": "#include <ferry/concepts/space.hpp>\n#include <ferry/memory/detail/block.hpp>\n",
    "include/ferry/runtime/detail/launch.hpp": "#include <Kokkos_Core.hpp>\n#include <ferry/memory/pool.hpp>\n",
    "include/ferry/rows/detail/kernels.hpp": "#include <ferry/runtime/detail/launch.hpp>\n",
    "include/ferry/rows/gather.hpp": "#include <ferry/rows/detail/kernels.hpp>\n",
    "include/ferry/optim/rules/sgd.hpp": "#include <ferry/rows/gather.hpp>\n",
    "include/ferry/interop/eigen.hpp": "#include <Eigen/Core>\n#include <ferry/rows/gather.hpp>\n",
    "include/ferry/distributed/communicator/detail/rank.hpp": "#include <ferry/rows/gather.hpp>\n",
    "include/ferry/distributed/sharded/table.hpp": "#include <ferry/distributed/communicator/detail/rank.hpp>\n",
    "include/ferry/ferry.hpp": '#include "backends/enabled.hpp"\n#include "../../backends/enabled.hpp"\n',
    "include/ferry/extend.hpp": "#include <ferry/rows/detail/kernels.hpp>\n",
    "include/ferry/io/checkpoint.hpp": "#include <ferry/extend.hpp>\n#include <ferry/rows/gather.hpp>\n#include <ferry/rows/detail/kernels.hpp>\n",
    "include/ferry/io/detail/stream.hpp": "",
    "include/ferry/distributed/sharded/checkpoint.hpp": "#include <ferry/io/checkpoint.hpp>\n",
    "src/ferry.cpp": '#include "../backends/enabled.cpp"\n#include "memory/pool.cpp"\n',
    "src/ferry_distributed.cpp": '#include "distributed/sharded/table.cpp"\n',
    "src/error.cpp": "#include <ferry/version.hpp>\n",
    "src/memory/pool.cpp": '#include <ferry/memory/detail/block.hpp>\n#include "../../backends/enabled.hpp"\n#include "pages.hpp"\n',
    "src/memory/pages.hpp": "",
    "src/rows/gather.cpp": '#include "../memory/pages.hpp"\n',
    "src/distributed/sharded/table.cpp": '#include "../communicator/rank.hpp"\n',
    "src/distributed/communicator/rank.hpp": "",
    "backends/enabled.cpp": "#if defined(KOKKOS_ENABLE_CUDA)\n#include \"cuda/sort.cpp\"\n#endif\n",
    "backends/cuda/sort.cpp": '#include "../../backends/enabled.hpp"\n#include <ferry/memory/detail/block.hpp>\n',
    FENCE: "# headers\nio include/ferry/rows/detail/kernels.hpp\n",
    "backends/enabled.hpp": "#ifdef KOKKOS_ENABLE_CUDA\n#include \"cuda/alloc.hpp\"\n#endif\n",
    "backends/host/alloc.hpp": "#include <ferry/memory/detail/block.hpp>\n",
    "backends/cuda/alloc.hpp": "#include <cuda_runtime.h>\ninline void f() { cudaFree(nullptr); }\n",
}

BROKEN = [
    ("include/ferry/concepts/space.hpp", "#include <ferry/memory/pool.hpp>", "concepts may include only"),
    ("include/ferry/memory/pool.hpp", "#include <ferry/runtime/detail/launch.hpp>", "memory may include only"),
    ("include/ferry/tensor/view.hpp", '#include "../rows/gather.hpp"', "tensor may include only"),
    ("include/ferry/runtime/detail/launch.hpp", "#include <ferry/rows/detail/kernels.hpp>", "runtime may include only"),
    ("include/ferry/rows/detail/kernels.hpp", "#include <ferry/optim/rules/sgd.hpp>", "rows may include only"),
    ("include/ferry/rows/gather.hpp", "#include <ferry/interop/eigen.hpp>", "rows may include only"),
    ("include/ferry/rows/gather.hpp", '#include "../../../backends/enabled.hpp"', "rows may include only"),
    ("include/ferry/rows/gather.hpp", '#include <ferry/backends/enabled.hpp>', "rows may include only"),
    ("include/ferry/rows/gather.hpp", '#include "../../../tests/support/random.hpp"', "not a header of the library"),
    ("include/ferry/memory/pool.hpp", "#include <ferry/ferry.hpp>", "memory may include only"),
    ("include/ferry/version.hpp", "#include <ferry/memory/pool.hpp>", "is a plain header"),
    ("include/ferry/extra.hpp", "", "outside the capabilities"),
    ("include/ferry/distributed/communicator/detail/rank.hpp", "#include <ferry/distributed/sharded/table.hpp>", "may include only"),
    ("include/ferry/rows/gather.hpp", "#include <ferry/io/checkpoint.hpp>", "main may not use io"),
    ("include/ferry/ferry.hpp", "#include <ferry/io/checkpoint.hpp>", "main may not use io"),
    ("include/ferry/rows/gather.hpp", "#include <ferry/extend.hpp>", "rows may include only"),
    ("include/ferry/extend.hpp", "#include <ferry/io/checkpoint.hpp>", "main may not use io"),
    ("include/ferry/io.hpp", "#include <ferry/distributed/sharded/table.hpp>", "io may not use distributed"),
    ("src/io/stream.cpp", "#include <ferry/distributed/sharded/table.hpp>", "io may not use distributed"),
    ("src/memory/pool.cpp", "#include <ferry/distributed/sharded/table.hpp>", "main may not use distributed"),
    ("src/ferry.cpp", '#include "distributed/sharded/table.cpp"', "main may not use distributed"),
    ("src/ferry_io.cpp", '#include "distributed/sharded/table.cpp"', "io may not use distributed"),
    ("src/memory/pool.cpp", '#include "../rows/kernels.hpp"', "memory may include only"),
    ("src/memory/pool.cpp", "#include <ferry/rows/gather.hpp>", "memory may include only"),
    ("src/memory/pool.cpp", '#include "../../backends/cuda/alloc.hpp"', "what lies directly in backends/"),
    ("src/memory/pool.cpp", '#include "../../tests/support/random.hpp"', "not a header of the library"),
    ("src/interop/eigen.cpp", '#include "../rows/kernels.hpp"', "nothing from rows/detail"),
    ("src/interop/eigen.cpp", "#include <ferry/rows/detail/kernels.hpp>", "nothing from rows/detail"),
    ("src/instances/rows.cpp", "#include <ferry/loader/prefetcher.hpp>", "main may not use io"),
    ("src/distributed/communicator/rank.cpp", '#include "../sharded/route.hpp"', "may include only"),
    ("src/other/extra.cpp", "", "outside the capabilities"),
    ("backends/cuda/sort.cpp", '#include "../../src/rows/gather.hpp"', "backends may include only"),
    ("backends/cuda/sort.cpp", "#include <ferry/rows/gather.hpp>", "backends may include only"),
    ("include/ferry/rows/gather.hpp", '#include "../../../src/rows/kernels.hpp"', "not a header of the library"),
    ("include/ferry/io/checkpoint.hpp", "#include <ferry/memory/detail/block.hpp>", "does not list it"),
    ("src/io/stream.cpp", '#include "../memory/pages.hpp"', "does not list it"),
    ("src/distributed/sharded/table.cpp", "#include <ferry/io/detail/stream.hpp>", "does not list it"),
    (FENCE, "io include/ferry/memory/detail/block.hpp", "take the line out"),
    ("include/ferry/distributed/sharded/inside/extra.hpp", "", "lies in inside"),
    ("include/ferry/rows/inside/extra.hpp", "", "lies in inside"),
    ("include/ferry/rows/detail/deeper/extra.hpp", "", "lies in detail/deeper"),
    ("include/ferry/interop/eigen.hpp", "#include <ferry/rows/detail/kernels.hpp>", "nothing from rows/detail"),
    ("include/ferry/ferry.hpp", "#include <ferry/rows/detail/kernels.hpp>", "nothing from rows/detail"),
    ("backends/host/alloc.hpp", "#include <ferry/rows/gather.hpp>", "backends may include only"),
    ("include/ferry/memory/pool.hpp", "#ifdef KOKKOS_ENABLE_CUDA\n#endif", "asks which backends"),
    ("include/ferry/memory/pool.hpp", "inline void f() { cudaFree(nullptr); }", "names a CUDA function"),
    ("include/ferry/memory/pool.hpp", "using a = Kokkos::Impl::b;", "inside of Kokkos"),
    ("include/ferry/memory/pool.hpp", "#include <cub/cub.cuh>", "a vendor's header"),
    ("include/ferry/memory/pool.hpp", "#include <thrust/sort.h>", "a vendor's header"),
    ("include/ferry/memory/pool.hpp", "#  include <cuda.h>", "a vendor's header"),
    ("include/ferry/tensor/view.hpp", "#include <Eigen/Core>", "includes Eigen"),
    ("backends/host/alloc.hpp", "#include <Eigen/Core>", "includes Eigen"),
    ("backends/host/alloc.hpp", "#if defined(KOKKOS_ENABLE_OPENMP)\n#endif", "switches on KOKKOS_ENABLE_"),
    ("include/ferry/rows/detail/kernels.hpp", "auto f = KOKKOS_LAMBDA(int) {};", "extended lambda"),
    ("backends/cuda/alloc.hpp", "inline void g() { Kokkos::fence(); }", "fences globally"),
    ("backends/host/sort.hpp", "", "of which backends/cuda has no tuned form"),
    ("include/ferry/tensor/view.hpp", "\n" * 301, "lines; 300 are the most"),
    ("include/ferry/tensor/view.hpp", "// " + "-" * 108, "a comment wider than 110 columns in line 4"),
    ("backends/host/alloc.hpp", "int i = 0;  ///< " + "-" * 108, "a comment wider than 110 columns in line 3"),
]


def write_tree(root, files):
    for name, body in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(("" if name == FENCE else "#pragma once\n") + body, encoding="utf-8")


def self_test():
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        write_tree(Path(scratch), GOOD)
        failures += [f"a legal tree is refused: {line}" for line in check(scratch)[0]]
    for name, body, sentence in BROKEN:
        with tempfile.TemporaryDirectory() as scratch:
            write_tree(Path(scratch), GOOD | {name: GOOD.get(name, "") + body + "\n"})
            findings = check(scratch)[0]
            if not any(sentence in finding for finding in findings):
                failures.append(f"{name} with {body.strip()!r} is not refused with {sentence!r}: {findings}")
    with tempfile.TemporaryDirectory() as scratch:
        write_tree(Path(scratch), GOOD)
        (Path(scratch) / "include/ferry/concepts/space.hpp").write_text("#include <concepts>\n", encoding="utf-8")
        if not any("#pragma once" in finding for finding in check(scratch)[0]):
            failures.append("a header without #pragma once is not refused")
        if not check(Path(scratch) / "nowhere")[0]:
            failures.append("a folder without headers is not refused")
    print("\n".join(failures) or f"{len(BROKEN) + 2} broken trees refused, 1 legal tree accepted")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments[:1] == ["--fence"] and len(arguments) == 2:
        crossings = set()
        check(arguments[1], crossings)
        print("\n".join(" ".join(line) for line in sorted(crossings)))
        return 0
    if len(arguments) != 1:
        print(__doc__)
        return 2
    findings, files = check(arguments[0])
    print("\n".join(findings) or f"{files} files follow the rules")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
