// The tree's windows: the server sends some 200 rows out of any number, two spacers stand for the
// rest, and scrolling asks for the next window. Also the minimap's drag zoom.
const ROW_PX = () => (matchMedia("(pointer: coarse)").matches ? 44 : 26);
const OVERSCAN_ROWS = 60;

const scroller = () => document.querySelector("#scroller[data-window]");
export const hasTree = () => scroller() !== null;
const spaces = () => document.querySelectorAll("#rows > .tg-space");

let busy = false;
let wanted = null; // another address, asked for while a request was under way: the last one counts
let observed = null;

// Heights are set here because a style attribute would not pass the page's CSP. The observer sets
// them before the browser lays new rows out: it would clamp the scroll position otherwise.
const observer = new MutationObserver(() => layOut());
export const layOut = () => {
  const list = document.getElementById("rows");
  if (!list) return;
  if (list !== observed) {
    observer.disconnect();
    observer.observe((observed = list), { childList: true });
  }
  for (const space of spaces()) space.style.blockSize = `${Number(space.dataset.lines) * ROW_PX()}px`;
  list.closest("[role=treegrid]").setAttribute("aria-rowcount", shown().total + 1);
  const pager = document.getElementById("pager");
  if (pager) pager.hidden = true; // links for people without script
};

const shown = () => {
  const [before, after] = spaces();
  const first = Number(before.dataset.lines);
  const rows = document.querySelectorAll("#rows > [role=row]").length;
  return { first, last: first + rows, total: first + rows + Number(after.dataset.lines) };
};

// first: a line, or null for wherever the selected step stands. address: another state of the tree.
// show: the line that is to be seen, before scrolling is looked at.
export const loadWindow = async (first, { address = null, scrolled = false, show = null } = {}) => {
  const box = scroller();
  if (!box) return;
  if (busy) {
    if (!scrolled) wanted = { first, address, show };
    return;
  }
  busy = true;
  const url = new URL(address ?? box.dataset.window, location.href);
  const span = new URL(location.href).searchParams.get("span");
  const opened = document.getElementById("main").dataset.at;
  if (span) url.searchParams.set("span", span);
  else if (opened) url.searchParams.set("at", opened);
  if (first === null) url.searchParams.delete("first");
  else url.searchParams.set("first", String(Math.max(first, 0)));
  if (scrolled) url.searchParams.set("part", "rows");
  const focused = document.activeElement?.closest("#rows > [role=row]")?.id;
  try {
    await htmx.ajax("GET", url.pathname + url.search, { target: "#rows", swap: "innerHTML", source: box });
  } finally {
    busy = false;
  }
  if (address) box.dataset.window = address;
  if (show !== null) {
    layOut();
    bringIntoView(show);
  }
  if (focused && !document.activeElement?.closest("#rows")) document.getElementById(focused)?.focus({ preventScroll: true });
  if (wanted) {
    const next = wanted;
    wanted = null;
    await loadWindow(next.first, next);
  } else onScroll(); // the reader may have gone on meanwhile
};

const onScroll = () => {
  const box = scroller();
  if (!box || busy || !spaces().length) return;
  const { first, last, total } = shown();
  const top = Math.floor(box.scrollTop / ROW_PX());
  const bottom = top + Math.ceil(box.clientHeight / ROW_PX());
  const room = Math.floor((Number(box.dataset.step) - (bottom - top)) / 2);
  const tooHigh = first > 0 && top < first + OVERSCAN_ROWS;
  const tooLow = last < total && bottom > last - OVERSCAN_ROWS;
  if (tooHigh || tooLow) loadWindow(top - room, { scrolled: true });
};

let frame = 0;
document.addEventListener(
  "scroll",
  (event) => {
    if (event.target !== scroller()) return;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(onScroll);
  },
  { capture: true, passive: true },
);

export const bringIntoView = (line) => {
  const box = scroller();
  if (!box) return;
  const top = line * ROW_PX();
  if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * ROW_PX())
    box.scrollTop = Math.max(0, top - box.clientHeight * 0.4);
};

// ---------------------------------------------------------------- minimap: drag to zoom
let brush = null;
const place = (event, box) => {
  const { left, width } = box.getBoundingClientRect();
  return Math.min(Math.max((event.clientX - left) / width, 0), 1);
};
const draw = (box, from, to) => {
  let mark = box.querySelector(".brush");
  if (!mark) box.append((mark = Object.assign(document.createElement("div"), { className: "brush" })));
  mark.style.insetInlineStart = `${Math.min(from, to) * 100}%`;
  mark.style.inlineSize = `${Math.abs(to - from) * 100}%`;
};
export const drawZoom = () => {
  const box = document.getElementById("minimap");
  if (!box) return;
  box.querySelector(".brush")?.remove();
  const here = new URL(location.href).searchParams;
  const length = Number(box.dataset.length);
  if (here.get("from") || here.get("to"))
    draw(box, Number(here.get("from") ?? 0) / length, Number(here.get("to") ?? length) / length);
};
document.addEventListener("pointerdown", (event) => {
  const box = event.target instanceof Element && event.target.closest("#minimap");
  if (!box) return;
  box.setPointerCapture(event.pointerId);
  brush = { box, from: place(event, box) };
});
document.addEventListener("pointermove", (event) => brush && draw(brush.box, brush.from, place(event, brush.box)));
document.addEventListener("pointerup", (event) => {
  if (!brush) return;
  const { box, from } = brush;
  const to = place(event, box);
  brush = null;
  const length = Number(box.dataset.length);
  const range = Math.abs(to - from) > 0.005 ? [Math.min(from, to), Math.max(from, to)] : null;
  box.dispatchEvent(new CustomEvent("run:zoom", { bubbles: true, detail: range && range.map((part) => Math.round(part * length)) }));
});

addEventListener("resize", layOut);
document.addEventListener("htmx:after:swap", drawZoom);
layOut();
drawZoom();
