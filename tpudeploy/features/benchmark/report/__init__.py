"""The report of benchmark runs: a page, a table and figures for other tools."""
