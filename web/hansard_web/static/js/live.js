// The live stream of a list: its state, its pause, and new rows that never move what is read.
import { announce } from "./keys.js";

const MOST_ROWS = 500;
const state = { isPaused: false, waiting: 0, isStale: false };

const stateMark = () => document.getElementById("live-state");
const pauseButton = document.getElementById("live-pause");
const newRows = () => document.getElementById("new-runs");

const show = (name, label) => {
  const mark = stateMark();
  mark.hidden = false;
  mark.dataset.state = name;
  mark.textContent = label;
};

const showConnected = () =>
  state.isPaused ? show("paused", "Paused") : show("live", pauseButton ? "Live" : "Listening");

// Rows come in at the top only while the top is what the reader sees and nothing is selected.
const mayGrow = () =>
  !state.isPaused &&
  document.getElementById("runs") !== null &&
  scrollY < 120 &&
  !document.querySelector("#runs :checked, #runs :focus") &&
  new URLSearchParams(location.search).get("cursor") === null;

// A list without rows has no table for new ones to go into: the page is loaded with it.
const isEmpty = () =>
  !state.isPaused &&
  document.getElementById("runs") === null &&
  document.querySelector("#results .empty") !== null;

const showWaiting = () => {
  const link = newRows();
  if (!link) return;
  link.hidden = state.waiting === 0 && !state.isStale;
  link.lastElementChild.textContent =
    state.waiting === 1 ? "1 new run" : state.waiting ? `${state.waiting} new runs` : "Show what is new";
};

const wait = (count) => {
  state.waiting += count;
  showWaiting();
  if (count) announce(`${state.waiting} new runs`);
};

const trim = () => {
  const rows = document.querySelectorAll("#runs > tr[id]");
  for (const row of [...rows].slice(MOST_ROWS)) row.remove();
};

document.addEventListener("htmx:sse:after:connection", showConnected);
document.addEventListener("htmx:sse:error", () => show("reconnecting", "Reconnecting"));
document.addEventListener("htmx:sse:close", () => show("reconnecting", "Disconnected"));

document.addEventListener("htmx:sse:before:message", (event) => {
  const { message } = event.detail;
  if (event.target.dataset.onNews === "reload") {
    event.preventDefault();
    location.reload();
    return;
  }
  if (message.event) return;
  const added = /^\s*<hx-partial data-new="(\d+)"/.exec(message.data);
  if (added && isEmpty()) {
    event.preventDefault();
    location.reload();
    return;
  }
  if (added && !mayGrow()) {
    event.preventDefault();
    wait(Number(added[1]));
  } else if (state.isPaused) {
    event.preventDefault();
    state.isStale = true;
    showWaiting();
  }
});

document.addEventListener("htmx:sse:after:message", trim);

// More than can be sent as rows has happened, or rows whose place is not the top.
// The reader decides when: under a flood, a page that reloads by itself could never be read.
document.addEventListener("resync", () => {
  state.isStale = true;
  showWaiting();
});
document.addEventListener("more", (event) => wait(Number(event.detail.data)));

const togglePause = () => {
  state.isPaused = !state.isPaused;
  pauseButton.setAttribute("aria-pressed", String(state.isPaused));
  pauseButton.querySelector("span").textContent = state.isPaused ? "Resume" : "Pause";
  pauseButton.querySelector("use").setAttribute("href", state.isPaused ? "#i-play" : "#i-pause");
  showConnected();
  announce(state.isPaused ? "Live rows paused" : "Live rows resumed");
  if (!state.isPaused && (state.waiting || state.isStale)) location.reload();
};

if (pauseButton) {
  pauseButton.hidden = false;
  pauseButton.addEventListener("click", togglePause);
  document.addEventListener("key:pause", (event) => {
    event.preventDefault();
    togglePause();
  });
}
