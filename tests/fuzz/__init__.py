"""Every reader and loader on any bytes: ``make fuzz`` under atheris, a part under hypothesis with the other tests."""
