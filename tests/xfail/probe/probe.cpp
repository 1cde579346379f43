int ferry_xfail_probe = 1;
