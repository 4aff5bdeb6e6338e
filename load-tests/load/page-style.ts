/** The style of the report page: colours by role, twice; the second set where its reader's system is dark. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --ground: #f3f6f8; --surface: #fff; --text: #12212b; --muted: #506371; --line: #dbe3e8;
  --good: #1b6437; --danger: #b3261e; --warning: #7a4b00; --warning-soft: #fff3d9;
  --first: #0b6883; --second: #b4540a; --third: #8a3ca8; --bare: #9aa9b3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0b1319; --surface: #121d25; --text: #e5eef3; --muted: #9db1be; --line: #263742;
    --good: #86d9a4; --danger: #ff9a91; --warning: #f3c776; --warning-soft: #33270f;
    --first: #5cc6e2; --second: #f0a35e; --third: #cf9be6; --bare: #5f7380;
  }
}
* { box-sizing: border-box; }
html { background: var(--ground); color: var(--text); font: 400 1rem/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; }
body { margin: 0 auto; max-width: 84rem; padding: 1.5rem clamp(0.75rem, 3vw, 2rem) 4rem; overflow-wrap: break-word; }
h1 { margin: 0 0 0.25rem; font-size: 1.6rem; }
h2 { margin: 0; font-size: 1.2rem; }
h3 { margin: 0 0 0.25rem; font-size: 0.95rem; font-weight: 600; }
p { margin: 0.25rem 0; }
a { color: var(--first); }
.muted, figcaption { color: var(--muted); font-size: 0.875rem; }
.notice { background: var(--warning-soft); color: var(--warning); border-radius: 8px; padding: 0.5rem 0.9rem; margin: 0.9rem 0; }
.scroll { overflow-x: auto; }
.scroll + .scroll { margin-top: 1rem; }
td.short, td:first-child a { white-space: nowrap; }
section, .summary { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.1rem; margin-top: 1.1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
th, td { text-align: left; padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--muted); font-weight: 600; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.ok, .better { color: var(--good); font-weight: 600; }
.missed, .worse { color: var(--danger); font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: 1rem 1.5rem; margin: 0.9rem 0; }
figure { margin: 0; min-width: 0; }
svg { display: block; width: 100%; max-width: 27rem; height: auto; font-size: 13px; }
svg text { fill: var(--muted); }
svg .label { fill: var(--text); font-size: 14px; }
svg .grid { stroke: var(--line); }
svg .mark { stroke: var(--muted); stroke-dasharray: 2 4; }
svg .mark-number { font-size: 11px; }
svg .whisker { stroke: var(--text); stroke-width: 1.5; opacity: 0.65; }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .line-1 { stroke: var(--first); } svg .line-2 { stroke: var(--second); } svg .line-3 { stroke: var(--third); }
svg .dot { stroke: none; }
svg .dot.line-1, svg .bar.line-1, svg .name.line-1 { fill: var(--first); stroke: none; }
svg .dot.line-2, svg .name.line-2 { fill: var(--second); stroke: none; }
svg .dot.line-3, svg .name.line-3 { fill: var(--third); stroke: none; }
svg .bar.line-bare { fill: var(--bare); stroke: none; }
pre { overflow-x: auto; font-size: 0.8rem; color: var(--danger); white-space: pre-wrap; }
`;
