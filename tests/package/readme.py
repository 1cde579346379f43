#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the lines that README.md gives for an installation with Conan, as they are there, in an empty home and in a copy of
the tree; then builds a program that requires the package, in another folder. The copy must be as it was afterwards. The empty
home holds one setting of Conan, for a quick compilation.

    readme.py [--keep]    prints "N passed, M failed"; --keep leaves the folders for a look at them
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = ("without Conan Center", "with Conan Center")
MOST_LINES = 3
STAND_IN = {"boost": "1.74.0", "isa-l": "2.30.0", "nlohmann_json": "3.11.2", "xxhash": "0.8.1"}


def lines_of(case):
    """The shell lines below the marker of a case."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(rf"<!-- test: {re.escape(case)} -->\n```sh\n(.*?)```\n", text, re.DOTALL)
    if len(found) != 1:
        raise RuntimeError(f"README.md has {len(found)} blocks of lines for an installation {case}")
    lines = found[0].strip().splitlines()
    if not 1 <= len(lines) <= MOST_LINES:
        raise RuntimeError(f"README.md has {len(lines)} lines for an installation {case}, at most {MOST_LINES} are asked for")
    return lines


def copy_tree(to):
    """What a fresh checkout has: the files that git knows, else everything but what builds left here."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode != 0:
        shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(".git", "build", ".cache", "__pycache__"))
        return
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def contents(folder):
    """Every folder and file below, with the file's hash."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for path in folder.rglob("*")}


def environment(home, first_in_path=()):
    """An empty home, and nothing of the tools that started this. Settings of pip, such as a mirror, stay."""
    kept = {name: value for name, value in os.environ.items()
            if not re.match(r"(CONAN|XDG|CMAKE|Kokkos|VIRTUAL_ENV|PYTHON|FERRY|CC$|CXX$)", name)}
    tools = str(Path(sys.prefix) / "bin")
    path = [part for part in kept.get("PATH", "").split(os.pathsep) if part and os.path.realpath(part) != os.path.realpath(tools)]
    return kept | {"HOME": str(home), "PATH": os.pathsep.join([*map(str, first_in_path), *path]), "OMP_PROC_BIND": "false",
                   "OMP_NUM_THREADS": "2"}


def run(commands, folder, env, timeout=1800):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=env, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"these lines failed in {folder}:\n{commands}\n\n{done.stdout[-6000:]}")
    return done.stdout


def add_stand_in(folder, env):
    """Conan Center as far as ferry needs it: its packages under numbers, wrapping the distribution's."""
    for name, version in STAND_IN.items():
        recipe = folder / "recipes" / name / "all"
        recipe.mkdir(parents=True)
        (folder / "recipes" / name / "config.yml").write_text(f"versions:\n  \"{version}\":\n    folder: all\n")
        text = (ROOT / f"conan/index/recipes/{name}/system/conanfile.py").read_text(encoding="utf-8")
        numbered = text.replace('    version = "system"\n', "")
        if numbered == text:
            raise RuntimeError(f"the recipe of {name} has changed: it names no version to leave out")
        (recipe / "conanfile.py").write_text(numbered)
    run(f"conan remote remove conancenter && conan remote add conancenter '{folder}' --type local-recipes-index", folder, env)


def compile_quickly(home):
    """Packages of this home are compiled without the optimiser: other tests run the library's code."""
    (home / ".conan2").mkdir()
    variables = {"CMAKE_CXX_FLAGS_RELEASE": "-O0 -DNDEBUG"}
    (home / ".conan2/global.conf").write_text(f"tools.cmake.cmaketoolchain:extra_variables={json.dumps(variables)}\n")


def consume(case, last_line, source, folder, env):
    """A program of its own that requires the package, by README's conanfile.txt and lines. A case other than the first one
    has the options of its last line."""
    for name in ("main.cpp", "CMakeLists.txt"):
        shutil.copy2(ROOT / "tests/package" / name, folder / name)
    required = re.findall(r"```ini\n(\[requires\].*?)```\n", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    (folder / "conanfile.txt").write_text(required)
    install, *build = lines_of("a program in another folder")
    if case != CASES[0]:
        install = f"conan install . {last_line.split('conan create . ', 1)[1]}"
    run(install.replace("~/ferry", str(source)), folder, env)
    return run("\n".join(build) + "\n. build/Release/generators/conanrun.sh\nbuild/Release/gather_rows", folder, env)


def test(case, work, tools):
    """Gives the folder of Conan that a case without one of its own may use."""
    lines = lines_of(case)
    source, home, app = (work / case.replace(" ", "-") / name for name in ("source", "home", "app"))
    for folder in (source, home, app):
        folder.mkdir(parents=True)
    copy_tree(source)
    before = contents(source)
    compile_quickly(home)
    env = environment(home, tools)
    if tools:
        add_stand_in(work / "stand-in", env)
    run("\n".join(lines), source, env)
    after = contents(source)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        raise RuntimeError(f"the source tree was written to: {', '.join(changed[:20])}")
    own = [home / "conan" / "bin"] if not tools else tools
    output = consume(case, lines[-1], source, app, environment(home, own))
    if "gathered 6 rows" not in output:
        raise RuntimeError(f"the program said something else:\n{output[-3000:]}")
    return own


def main():
    work = Path(tempfile.mkdtemp(prefix="ferry-readme-"))
    passed = failed = 0
    tools = []
    try:
        for case in CASES:
            try:
                tools = test(case, work, tools)
                passed += 1
                print(f"{case}: passed", flush=True)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"{case}: FAILED: {error}", flush=True)
    finally:
        if "--keep" in sys.argv:
            print(work)
        else:
            shutil.rmtree(work, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
