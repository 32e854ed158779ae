"""The report's style: one file, both colour schemes, sizes that a phone can show."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --box: #f6f8fa;
  --one: #0b63c5; --two: #b35900; --three: #6639ba; --four: #116329; --doubt: #9a6700; --heat: 11, 99, 197; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --soft: #9ea7b3; --line: #3d444d;
  --box: #161b22; --one: #6cb6ff; --two: #f0a35e; --three: #c297ff; --four: #6bc46d; --doubt: #e3b341;
  --heat: 56, 139, 253; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
.note { color: var(--soft); font-size: .875rem; margin: .25rem 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: .75rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 0 1.5rem; }
.card { background: var(--box); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; }
.card b { display: block; font-size: 1.25rem; }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .25rem .5rem; text-align: right; white-space: nowrap; border: 1px solid var(--line); }
th { font-weight: 600; background: var(--box); }
table.facts td, table.facts th { text-align: left; white-space: normal; }
.heat td { background: rgba(var(--heat), var(--level, 0)); min-width: 3.25rem; }
.doubt { outline: 2px dashed var(--doubt); outline-offset: -3px; }
.bar { display: grid; grid-template-columns: minmax(0, 12rem) 1fr; gap: .25rem .75rem; align-items: center;
  margin: .25rem 0; font-size: .875rem; }
.bar i { display: block; height: 1.1rem; border-radius: .2rem; background: var(--one); min-width: 2px; }
.bar i.is-second { background: var(--two); }
.bar span { display: block; }
@media (max-width: 30rem) { .bar { grid-template-columns: 1fr; gap: 0; } }
svg { display: block; width: 100%; max-width: 36rem; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
svg .soft { fill: var(--soft); }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg .curve { fill: none; stroke-width: 2; stroke: var(--one); }
svg .dot { fill: var(--one); }
svg .point { fill: var(--page); stroke: var(--two); stroke-width: 2.5; }
@media print { body { max-width: none; } }
"""
