// What is counted over a live list follows its rows: soon after news, then at most every ten seconds.
const SOON_MS = 1_000;
const REST_MS = 10_000;
let askedAt = -REST_MS;
let timer = 0;
let isStale = false;

const box = () => document.getElementById("counts");
const isPaused = () => document.getElementById("live-pause")?.getAttribute("aria-pressed") === "true";

// Counted as the list was filtered when it was read, also if another kind of run has come since.
const address = () => {
  const query = new URLSearchParams(location.search);
  const shown = document.getElementById("live")?.dataset.kind;
  if (shown && !query.get("kind")) query.set("kind", shown);
  return `/fragments/runs/counts?${query}`;
};

const ask = () => {
  timer = 0;
  if (document.hidden || isPaused() || !box()) return; // asked for when somebody looks again
  askedAt = performance.now();
  isStale = false;
  htmx.ajax("GET", address(), { source: box(), target: box(), swap: "none" });
};

const plan = () => {
  if (!timer) timer = setTimeout(ask, Math.max(SOON_MS, askedAt + REST_MS - performance.now()));
};

document.addEventListener("htmx:sse:before:message", () => {
  isStale = true;
  plan();
});
document.addEventListener("visibilitychange", () => isStale && plan());
