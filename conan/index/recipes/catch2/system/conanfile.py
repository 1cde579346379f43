# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException

import debian_package

required_conan_version = ">=2.4"


class SystemCatch2(ConanFile):
    """Catch2 3 of the machine; where that has none or only Catch2 2, the distribution's package, unpacked and not installed."""

    name = "catch2"
    version = "system"
    description = "A test framework for C++"
    license = "BSL-1.0"
    url = "https://github.com/catchorg/Catch2"
    topics = ("test-framework",)
    package_type = "static-library"
    settings = "os", "arch"
    exports = "debian_package.py"

    @staticmethod
    def _installed():
        """The folder of an installed Catch2Config.cmake of version 3."""
        patterns = ("usr/local/lib*/cmake/Catch2", "usr/lib*/cmake/Catch2", "usr/lib/*/cmake/Catch2", "usr/share/cmake/Catch2")
        for folder in (found for pattern in patterns for found in Path("/").glob(pattern)):
            version_file = folder / "Catch2ConfigVersion.cmake"
            if not version_file.exists() or not (folder / "Catch2Config.cmake").exists():
                continue
            version = re.search(r'PACKAGE_VERSION "(\d+)\.', version_file.read_text(encoding="utf-8"))
            if version and int(version.group(1)) >= 3:
                return folder
        return None

    def package(self):
        if self._installed():
            return
        try:
            version = debian_package.unpack("libcatch2-dev", "3", debian_package.default_suites(), self.package_folder)
        except debian_package.NotAvailable as error:
            raise ConanException(f"Catch2 3 is neither installed nor to be had from this machine's mirror: {error}")
        self.output.info(f"Unpacked libcatch2-dev {version}")

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
        unpacked = sorted(Path(self.package_folder).glob("usr/**/cmake/Catch2"))
        folder = unpacked[0] if unpacked else self._installed()
        if folder is None:
            raise ConanException("the installed Catch2 3 is gone: conan remove catch2/system, then install again")
        self.cpp_info.builddirs = [str(folder)]
