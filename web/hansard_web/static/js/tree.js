// The tree by keyboard, and while its run is running. keys.js turns keys into events.
import { announce } from "./keys.js";
import { change, close, current, focusRow, fragment, isAlone, main, renewPane, rows, select, selectKey, selected } from "./reading.js";
import { bringIntoView, hasTree, loadWindow } from "./waterfall.js";

const REFRESH_MS = 5000;

const jump = async (to, back) => {
  const url = new URL(location.href);
  // The row, not the address: that follows only when the pane has come.
  if (selected()) url.searchParams.set("span", main().dataset.at ?? selected().id.slice(2));
  url.searchParams.set("to", to);
  url.searchParams.set("back", back ? 1 : 0);
  const found = await (await fetch(fragment(url, "jump"))).json();
  if (found.line === null) return announce(to === "error" ? "No failed step" : "No match");
  if (!document.getElementById(`s-${found.key}`)) {
    url.searchParams.set("span", found.key); // its group opens with it
    for (const name of ["to", "back", "closed", "first"]) url.searchParams.delete(name);
    history.replaceState(history.state, "", url);
    await loadWindow(found.line - 80, { address: fragment(url, "tree"), show: found.line });
  } else bringIntoView(found.line);
  const row = document.getElementById(`s-${found.key}`);
  focusRow(row); // not when the pane has come: the reader may have gone on by then
  select(current(row.querySelector(".tg-title").href, ["tab"]));
};
const here = (event) => event.target.closest?.("#rows > [role=row]") ?? selected() ?? rows()[0];
const step = (way) => (event) => {
  const all = rows();
  if (!all.length) return;
  const inGrid = document.activeElement?.closest?.("#rows");
  const at = all.indexOf(here(event));
  const next = inGrid || selected() ? all[at + way] : all[at];
  if (!next) return;
  event.preventDefault();
  focusRow(next);
  if (!isAlone() && !next.classList.contains("is-group")) select(current(next.querySelector(".tg-title").href, ["tab"]));
};
const fold = (open) => (event) => {
  const row = here(event);
  if (!row) return;
  event.preventDefault();
  const level = Number(row.ariaLevel);
  if (row.ariaExpanded === String(!open)) {
    const id = row.id;
    change(current(row.querySelector(".tg-toggle").href, ["span", "tab"]))?.then(() => focusRow(document.getElementById(id) ?? rows()[0]));
  } else if (open && row.ariaExpanded) row.nextElementSibling?.matches("[role=row]") && focusRow(row.nextElementSibling);
  else if (!open) {
    const parent = rows().slice(0, rows().indexOf(row)).findLast((one) => Number(one.ariaLevel) < level);
    if (parent) focusRow(parent);
  }
};
const foldAll = (value) => (event) => {
  event.preventDefault();
  const url = new URL(location.href);
  if (value) url.searchParams.set("shut", value);
  else url.searchParams.delete("shut");
  change(url);
};
// The same keys in the two other readings, where a stop is a line or an answer.
const stops = () => [...document.querySelectorAll(".log .rowlink, .talk [data-step-row]")];
const walk = (way) => (event) => {
  const all = stops();
  const at = all.findIndex((one) => one === document.activeElement || one.closest("[aria-selected=true], .is-selected"));
  const next = all[at < 0 ? 0 : at + way];
  if (!next) return;
  event.preventDefault();
  next.focus();
  const step = next.closest("[data-step-row]");
  if (step && !isAlone()) selectKey(step.dataset.stepRow);
};
const READING = {
  next: walk(1), previous: walk(-1),
  open: (event) => { const step = document.activeElement?.closest("[data-step-row]"); if (step) { event.preventDefault(); selectKey(step.dataset.stepRow); } },
  close: (event) => { if (!isAlone()) { event.preventDefault(); close(); } },
};
const KEYS = {
  next: step(1), previous: step(-1), expand: fold(true), collapse: fold(false),
  "collapse-all": foldAll("all"), "expand-all": foldAll(""),
  open: (event) => { const row = here(event); if (row) { event.preventDefault(); row.querySelector(".tg-title").click(); } },
  close: (event) => { if (!isAlone()) { event.preventDefault(); close(); } },
  first: (event) => { event.preventDefault(); bringIntoView(0); rows()[0] && focusRow(rows()[0]); },
  last: (event) => { event.preventDefault(); document.getElementById("scroller").scrollTop = 1e9; const row = rows().at(-1); if (row) focusRow(row); },
  "next-error": (event) => { event.preventDefault(); jump("error"); },
  "next-match": (event) => { event.preventDefault(); jump("match"); },
  "previous-match": (event) => { event.preventDefault(); jump("match", true); },
};
for (const [name, act] of Object.entries(KEYS))
  document.addEventListener(`key:${name}`, (event) => {
    if (hasTree()) act(event);
    else if (main()?.dataset.path) READING[name]?.(event);
  });
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.activeElement?.matches("input, textarea, select")) return;
  if (event.key === "f") { event.preventDefault(); document.getElementById("find")?.focus(); }
  if ("1234".includes(event.key)) document.querySelector(`[data-reading="${event.key}"]`)?.click();
});

// ---------------------------------------------------------------- live
const isOpen = () => document.querySelector('#run-facts .status[data-status="open"]');
const refresh = () => loadWindow(Number(document.querySelector("#rows > .tg-space").dataset.lines));
const news = (words) => {
  renewPane();
  if (hasTree()) return refresh();
  const link = document.getElementById("run-news"); // never move what is being read
  if (!link) return;
  link.lastChild.textContent = words;
  link.removeAttribute("hidden");
};
document.addEventListener("run-news", () => news("New steps: show them"));
document.addEventListener("run-change", () => news("The run has changed: show it"));
document.addEventListener("run-marks", () => hasTree() && refresh()); // what is said of it, in its head
// Bars of open steps grow to "now" although nothing arrives.
setInterval(() => document.visibilityState === "visible" && hasTree() && isOpen() && refresh(), REFRESH_MS);
