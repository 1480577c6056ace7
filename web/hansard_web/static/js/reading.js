// Reading a run: plain links open in place, the selected step and its tab stay in the address.
import { copy, toast } from "./keys.js";
import { bringIntoView, hasTree, loadWindow } from "./waterfall.js";

export const main = () => document.getElementById("main");
export const rows = () => [...document.querySelectorAll("#rows > [role=row]")];
// On narrow screens the step that a page opened with stays hidden until one is chosen.
export const isAlone = () => main().matches(".run--alone") || (main().matches(".run--opened") && matchMedia("(width < 75rem)").matches);
export const selected = () => document.querySelector("#rows > [aria-selected=true]");

// A link was rendered with the state of its time; the step and tab chosen since then stay chosen.
export const current = (href, names) => {
  const url = new URL(href, location.href);
  const here = new URL(location.href).searchParams;
  for (const name of names.includes("span") ? [...names, "closed"] : names) {
    if (here.get(name)) url.searchParams.set(name, here.get(name));
    else url.searchParams.delete(name);
  }
  return url;
};
export const fragment = (url, part) => `${main().dataset.fragments}/${part}${url.search}`;
const inRun = (url) => main().dataset.path === url.pathname;

const askPane = (url) => htmx.ajax("GET", fragment(url, "step"), { source: "#step", target: "#step", swap: "innerHTML" });
// The address changes at once: a pane that comes late must not take back what was chosen since.
const openPane = async (url) => {
  if (url.href !== location.href) history.pushState({ htmx: true }, "", url);
  await askPane(url);
  if (matchMedia("(width < 62.5rem)").matches) document.getElementById("step").scrollIntoView(); // it stands below
};

// A step that was still running when its pane came; what is selected or typed in it stays.
export const renewPane = () => {
  const pane = document.getElementById("step");
  const isBusy = pane.contains(document.activeElement) || pane.contains(getSelection().anchorNode);
  if (isBusy || !pane.querySelector('.pane-head .status[data-status="open"]')) return;
  askPane(new URL(location.href));
};

const forgetOpening = () => {
  main().classList.remove("run--opened");
  delete main().dataset.at;
};

export const select = (url) => {
  const key = url.searchParams.get("span");
  for (const row of rows()) {
    const is = row.id === `s-${key}`;
    row.setAttribute("aria-selected", is);
    row.tabIndex = is ? 0 : -1;
  }
  for (const one of document.querySelectorAll("[data-step-row]")) {
    const is = one.dataset.stepRow === key;
    if (one.matches("tr")) one.setAttribute("aria-selected", is);
    else one.classList.toggle("is-selected", is);
  }
  main().classList.toggle("run--alone", !key);
  forgetOpening();
  return key ? openPane(url) : close();
};
export const selectKey = (key) => {
  const url = new URL(location.href);
  url.searchParams.set("span", key);
  url.searchParams.delete("closed");
  return select(url);
};
export const close = () => {
  const url = new URL(location.href);
  url.searchParams.delete("span");
  url.searchParams.set("closed", "1");
  history.pushState({ htmx: true }, "", url);
  document.getElementById("step").replaceChildren();
  main().classList.add("run--alone");
  forgetOpening();
  selected()?.setAttribute("aria-selected", "false");
};
export const change = (url) => {
  history.pushState({ htmx: true }, "", url);
  return loadWindow(null, { address: fragment(url, "tree") });
};
export const focusRow = (row) => {
  for (const other of rows()) other.tabIndex = other === row ? 0 : -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
};

const copyFrom = async (address) => {
  const answer = await fetch(address).catch(() => null);
  if (answer?.ok) copy(await answer.text());
  else toast(answer ? `Not copied: Hansard answered ${answer.status}.` : "Not copied: Hansard does not answer.");
};

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("a[href]");
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link?.matches("[data-copy-from]")) {
    event.preventDefault();
    copyFrom(link.href);
    return void link.closest("details")?.removeAttribute("open");
  }
  if (!main()?.dataset.path) return;
  const row = event.target instanceof Element && event.target.closest("#rows > [role=row]");
  if (!link) {
    const said = event.target instanceof Element && event.target.closest("article[data-step-row]");
    if (said && !event.target.closest("button, summary, label") && !getSelection().toString()) return void selectKey(said.dataset.stepRow);
    if (row && !row.classList.contains("is-group")) select(current(row.querySelector(".tg-title").href, ["tab"]));
    return;
  }
  const url = new URL(link.getAttribute("href"), location.href); // a link of the graph has an object for an href
  if (!inRun(url)) return;
  if (link.matches(".tg-title") && row.classList.contains("is-group")) {
    event.preventDefault();
    change(current(row.querySelector(".tg-toggle").href, ["span", "tab"]));
  } else if (link.matches(".tg-title, [data-select]")) {
    event.preventDefault();
    select(link.matches("[data-select]") ? url : current(url, ["tab"]));
  } else if (link.matches("[data-tab]")) {
    event.preventDefault();
    openPane(url);
  } else if (link.matches("[data-step]")) {
    event.preventDefault();
    select(url);
  } else if (link.matches("[data-close]")) {
    event.preventDefault();
    close();
  } else if (hasTree() && link.matches(".tg-toggle, [data-inplace]")) {
    event.preventDefault();
    change(current(url, ["span", "tab"]));
  } else if (link.matches("[data-keep]")) link.href = current(url, ["span", "tab"]).href;
});
document.addEventListener("dblclick", (event) => {
  const row = event.target instanceof Element && event.target.closest("#rows > [data-zoom]");
  if (row) change(current(row.dataset.zoom, ["span", "tab"]));
});
document.addEventListener("run:zoom", ({ detail }) => {
  const url = new URL(location.href);
  for (const [at, name] of ["from", "to"].entries())
    if (detail) url.searchParams.set(name, detail[at]);
    else url.searchParams.delete(name);
  change(url);
});

const link = document.querySelector("[data-copy-link]");
if (link) {
  link.hidden = false;
  link.addEventListener("click", () => copy(location.href, "Link copied"));
}
const chosen = selected();
if (chosen) bringIntoView(Number(chosen.dataset.line));
