"""CSS and JavaScript of the page about a model."""

__all__ = ["SCRIPT", "STYLE"]

# Okabe and Ito's palette, safe for colour-blind readers; lighter colours on a dark page
STYLE = """
:root { --ink: #1a1a1a; --soft: #555; --page: #fff; --panel: #fafafa; --line: #d4d4d4;
  --blue: #0072b2; --red: #c24e00; --grey: #8a8a8a; --good: #00694a; --bad: #a63f00; --cell: 0, 114, 178; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --soft: #b0b0b0; --page: #141414; --panel: #1f1f1f;
  --line: #3d3d3d; --blue: #56b4e9; --red: #f0a030; --grey: #8f8f8f; --good: #4ad0a4; --bad: #f0a030;
  --cell: 86, 180, 233; } }
body { background: var(--page); color: var(--ink); }
h1, p, figcaption { overflow-wrap: anywhere; }
h2 { margin: 2rem 0 .5rem; font-size: 1.25rem; }
.verdict { font-weight: 600; padding: .6rem .9rem; border-left: 6px solid var(--good); background: var(--panel); }
.verdict.bad { border-color: var(--bad); }
table.facts { width: auto; max-width: 100%; }
table.facts td, table.facts th { text-align: left; white-space: normal; overflow-wrap: anywhere; vertical-align: top; }
table.facts th { font-weight: 600; white-space: nowrap; padding-right: 1.2rem; }
table.worst { width: auto; min-width: min(24rem, 100%); }
table.worst tr[data-show] { cursor: pointer; }
table.worst tr.chosen td { background: rgba(var(--cell), .18); }
.figures { align-items: start; grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); }
figure { background: var(--panel); border-color: var(--line); min-width: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--soft); }
figcaption a { color: var(--blue); white-space: nowrap; }
svg text { fill: var(--ink); font: 14px system-ui, sans-serif; }
svg text.note { fill: var(--soft); }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .line { fill: none; stroke: var(--blue); stroke-width: 2; }
svg .dash { fill: none; stroke: var(--red); stroke-width: 2.5; stroke-dasharray: 7 4; }
svg .stroke { stroke: var(--red); stroke-width: 4; }
svg .diagonal { fill: none; stroke: var(--grey); stroke-width: 1.5; }
svg .level { stroke: var(--grey); stroke-width: 1.5; stroke-dasharray: 3 3; }
svg .dot { fill: var(--blue); fill-opacity: .75; }
svg .high { fill: var(--red); }
svg [data-show] { cursor: pointer; }
svg .dot.chosen { stroke: var(--ink); stroke-width: 3; }
svg .cell { fill: rgba(var(--cell), var(--share)); }
svg .cell.best { stroke: var(--red); stroke-width: 4; }
svg .part.null { fill: var(--line); } svg .part.inside { fill: var(--blue); } svg .part.bound { fill: var(--red); }
.controls { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin-bottom: .5rem; }
.controls select, .controls button { font: inherit; color: inherit; background: var(--page);
  border: 1px solid var(--line); border-radius: 4px; padding: .3rem .6rem; min-height: 2.2rem; max-width: 100%; }
.key { margin-right: 1rem; }
.key::before { content: ""; display: inline-block; width: 1.4em; margin: 0 .35em .25em 0;
  border-top: 3px solid var(--blue); }
.key.spot::before { width: .6em; height: .6em; margin-bottom: 0; border: 0; border-radius: 50%;
  background: var(--blue); }
.key.short::before { border-top: 4px solid var(--red); }
.key.dashed::before { border-top: 3px dashed var(--red); }
#tip { position: fixed; z-index: 9; pointer-events: none; background: var(--ink); color: var(--page); font-size: .85rem;
  padding: .25rem .5rem; border-radius: 4px; max-width: min(20rem, 90vw); }
@media (max-width: 40rem) { svg text { font-size: 16px; } figure { padding: .4rem; }
  .controls { flex-wrap: nowrap; } .controls label { display: flex; gap: .4rem; align-items: center; min-width: 0; }
  .controls select { min-width: 0; } }
[hidden] { display: none !important; }
@media print { .controls, #tip, figcaption a { display: none; } figure, table { break-inside: avoid; }
  h2 { break-after: avoid; } body { margin: 0; max-width: none; } }
"""

SCRIPT = """
"use strict";
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");
document.body.append(tip);
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
  tip.hidden = mark === null;
  if (mark === null) return;
  tip.textContent = mark.dataset.tip;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = Math.max(8, Math.min(event.clientX + 12, room)) + "px";
  const below = event.clientY + 16;
  const isLow = below + tip.offsetHeight > window.innerHeight;
  tip.style.top = (isLow ? event.clientY - tip.offsetHeight - 10 : below) + "px";
});
document.addEventListener("pointerleave", () => { tip.hidden = true; });
function show(viewer, key) {
  const panels = [...viewer.querySelectorAll(".panel")];
  if (!panels.some((panel) => panel.dataset.key === key)) return false;
  for (const panel of panels) panel.hidden = panel.dataset.key !== key;
  viewer.querySelector("select").value = key;
  const mine = viewer.id + " " + key;
  for (const mark of document.querySelectorAll("[data-show]")) {
    if (mark.dataset.show.startsWith(viewer.id + " ")) mark.classList.toggle("chosen", mark.dataset.show === mine);
  }
  return true;
}
for (const viewer of document.querySelectorAll(".viewer")) {
  const select = viewer.querySelector("select");
  const step = (by) => {
    const place = (select.selectedIndex + by + select.options.length) % select.options.length;
    show(viewer, select.options[place].value);
  };
  select.addEventListener("change", () => show(viewer, select.value));
  viewer.querySelector(".back").addEventListener("click", () => step(-1));
  viewer.querySelector(".next").addEventListener("click", () => step(1));
  show(viewer, select.value);
}
const choose = (event) => {
  const mark = event.target.closest("[data-show]");
  if (mark === null || (event.type === "keydown" && event.key !== "Enter")) return;
  const [name, ...rest] = mark.dataset.show.split(" ");
  const viewer = document.getElementById(name);
  if (viewer !== null && show(viewer, rest.join(" "))) viewer.scrollIntoView({ block: "nearest" });
};
document.addEventListener("click", choose);
document.addEventListener("keydown", choose);
"""
