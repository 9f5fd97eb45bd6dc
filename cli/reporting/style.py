"""How reports look, in light and in dark; colour never tells anything alone."""

STYLE = """
:root {
  --bg: #ffffff; --fg: #1f2328; --muted: #59636e; --line: #d1d9e0; --card: #f6f8fa;
  --accent: #0550ae; --good: #116329; --good-bg: #dafbe1; --bad: #a40e26; --bad-bg: #ffebe9; --open: #7d4e00;
  --open-bg: #fff8c5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #0d1117; --fg: #e6edf3; --muted: #9198a1; --line: #3d444d; --card: #161b22;
    --accent: #79b8ff; --good: #56d364; --good-bg: #12261e; --bad: #ff8a80; --bad-bg: #2c1517; --open: #e3b341;
    --open-bg: #272115;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 48px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 6px; font-weight: 650; overflow-wrap: anywhere; }
h1 small { font-size: 18px; font-weight: 400; color: var(--muted); }
h2 { font-size: 19px; margin: 0 0 8px; font-weight: 620; }
h3 { font-size: 15px; margin: 20px 0 6px; font-weight: 620; }
p { margin: 0 0 8px; }
section { margin-top: 36px; }
.kicker { color: var(--muted); margin: 0 0 2px; }
.verdict { font-size: 17px; margin: 10px 0 4px; }
.note, figcaption, footer { color: var(--muted); font-size: 13.5px; }
.warning { border-left: 3px solid var(--open); padding: 2px 0 2px 10px; margin: 6px 0; }
footer { border-top: 1px solid var(--line); margin-top: 40px; padding-top: 10px; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; overflow-x: auto;
  font: 13px/1.45 ui-monospace, monospace; margin: 6px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 10px; margin: 20px 0 0; }
.tiles > div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tiles dt { color: var(--muted); font-size: 13px; }
.tiles dd { margin: 0; font-size: 20px; font-weight: 620; font-variant-numeric: tabular-nums; }
.tiles dd.below { font-size: 13px; font-weight: 400; color: var(--muted); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 6px 24px; margin: 0; }
.facts > div { display: flex; gap: 8px; }
.facts dt { color: var(--muted); flex: 0 0 108px; }
.facts dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
table.narrow { width: auto; }
.keep, td code { white-space: nowrap; }
td code.agent { white-space: normal; overflow-wrap: anywhere; }
th { text-align: left; font-weight: 600; color: var(--muted); font-size: 13px; white-space: nowrap; }
th, td { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
th.group { color: var(--fg); font-size: 14px; padding-top: 14px; }
th.n, td.n { text-align: right; white-space: nowrap; }
.mark { display: inline-block; border-radius: 10px; padding: 0 8px; font-size: 12.5px; white-space: nowrap;
  border: 1px solid var(--line); color: var(--muted); }
.mark.good { color: var(--good); background: var(--good-bg); border-color: transparent; }
.mark.bad { color: var(--bad); background: var(--bad-bg); border-color: transparent; }
.mark.open { color: var(--open); background: var(--open-bg); border-color: transparent; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
figure { margin: 12px 0 0; }
svg { display: block; font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
svg text { fill: var(--fg); }
svg .muted { fill: var(--muted); }
svg .strong { font-weight: 650; }
svg .grid { stroke: var(--line); stroke-width: 1; fill: none; }
svg .axis { stroke: var(--muted); stroke-width: 1; fill: none; }
svg .track { stroke: var(--line); stroke-width: 2; fill: none; }
svg .way { stroke: var(--accent); stroke-width: 2.5; fill: none; }
svg .left { stroke: var(--muted); stroke-width: 2; stroke-dasharray: 5 4; fill: none; }
svg .node { fill: var(--accent); stroke: var(--bg); stroke-width: 2; }
svg .base { fill: var(--bg); stroke: var(--fg); stroke-width: 2; }
svg .won { fill: var(--good); stroke: var(--bg); stroke-width: 2; }
svg .gain { fill: var(--accent); stroke: var(--accent); stroke-width: 1.5; }
svg .none { fill: var(--bg); stroke: var(--muted); stroke-width: 2; }
svg .worse { fill: var(--bg); stroke: var(--bad); stroke-width: 2; }
svg .cross { stroke: var(--bad); stroke-width: 2; fill: none; }
svg .ring { stroke: var(--accent); stroke-width: 1.5; fill: none; }
svg .bar { stroke: var(--accent); stroke-width: 1.5; fill: none; }
svg .bar.none { stroke: var(--muted); }
svg .bar.worse { stroke: var(--bad); }
svg .a { fill: var(--muted); fill-opacity: .7; }
svg .b { fill: var(--accent); fill-opacity: .7; }
svg .mean { stroke: var(--fg); stroke-width: 1.5; }
svg .agent { fill: var(--muted); fill-opacity: .45; }
svg .ticket { fill: var(--accent); fill-opacity: .85; }
svg .guard { fill: none; stroke: var(--muted); stroke-width: 1.5; }
svg .step { fill: var(--good); fill-opacity: .75; }
svg .pause { fill: var(--open); fill-opacity: .22; }
@media print { main { max-width: none; } .tiles > div, pre { break-inside: avoid; } }
""".strip()
