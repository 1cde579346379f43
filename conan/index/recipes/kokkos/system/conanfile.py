# SPDX-License-Identifier: Apache-2.0
import os
import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration

required_conan_version = ">=2.4"


class SystemKokkos(ConanFile):
    """The Kokkos in Kokkos_ROOT (the environment's or the profile's user.kokkos:root), with whatever backends it has.

    The options say which backends the graph needs; they are checked against the installation.
    """

    name = "kokkos"
    version = "system"
    description = "Performance portability for parallel C++ programs"
    license = "Apache-2.0 WITH LLVM-exception"
    url = "https://kokkos.org"
    topics = ("hpc", "parallel", "openmp", "cuda")
    package_type = "unknown"
    settings = "os", "arch"
    # installation: what distinguishes one installed Kokkos from another, for the ids of packages that are built with it.
    options = {"openmp": [True, False], "cuda": [True, False], "installation": [None, "ANY"]}
    default_options = {"openmp": True, "cuda": False}

    def _root(self):
        return self.conf.get("user.kokkos:root", default=os.environ.get("Kokkos_ROOT", ""), check_type=str)

    def _config_folder(self):
        if not self._root():
            return None
        root = Path(self._root()).expanduser()
        patterns = ("lib*/cmake/Kokkos", "lib/*/cmake/Kokkos", "share/cmake/Kokkos", "cmake/Kokkos")
        folders = [root] + [folder for pattern in patterns for folder in sorted(root.glob(pattern))]
        return next((folder for folder in folders if (folder / "KokkosConfig.cmake").exists()), None)

    def configure(self):
        folder = self._config_folder()
        if folder is None:
            return
        common = (folder / "KokkosConfigCommon.cmake").read_text(encoding="utf-8")
        version = (folder / "KokkosConfigVersion.cmake").read_text(encoding="utf-8")
        facts = re.findall(r'set\(PACKAGE_VERSION "([^"]*)"\)', version)[:1]
        for name in ("DEVICES", "OPTIONS", "ARCH", "CXX_COMPILER_ID", "CXX_COMPILER_VERSION"):
            facts += re.findall(rf"set\(Kokkos_{name} ([^)]*)\)", common)[:1]
        self.options.installation = " ".join(fact.strip().strip('"') for fact in facts)

    def validate(self):
        folder = self._config_folder()
        if folder is None:
            raise ConanInvalidConfiguration(f"no KokkosConfig.cmake under Kokkos_ROOT ({self._root() or 'not set'})")
        found = re.search(r"set\(Kokkos_DEVICES ([^)]*)\)", (folder / "KokkosConfigCommon.cmake").read_text(encoding="utf-8"))
        devices = set(found.group(1).split(";")) if found else set()
        for option, device in (("cuda", "CUDA"), ("openmp", "OPENMP")):
            if self.options.get_safe(option) and device not in devices:
                raise ConanInvalidConfiguration(f"the Kokkos in {folder} has no {device} (it has {', '.join(sorted(devices))})")

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
        folder = self._config_folder()
        self.cpp_info.builddirs = [str(folder)] if folder else []
