// SPDX-License-Identifier: Apache-2.0
int ferry_xfail_probe = 1;
