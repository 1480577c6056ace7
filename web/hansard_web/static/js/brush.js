// A brush over any chart with an axis of time: it narrows `since` and `until` of an address.
// data-brush: the address without them; data-from, data-to: the axis in ms; data-steps: its slices.
import { announce } from "./keys.js";

const DRAG_PX = 5;

const words = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");
const iso = (ms) => new Date(ms).toISOString();
const within = (value, low, high) => Math.min(Math.max(value, low), high);

class Brush {
  constructor(plot) {
    this.plot = plot;
    this.from = Number(plot.dataset.from);
    this.to = Number(plot.dataset.to);
    this.steps = Number(plot.dataset.steps);
    this.range = document.createElement("div");
    this.range.className = "brush-range";
    this.range.hidden = true;
    this.thumb = document.createElement("div");
    this.thumb.className = "brush-keys";
    this.thumb.tabIndex = 0;
    const about = "Time range. Arrow keys move, Shift with arrow keys extends, Enter filters, Escape clears";
    for (const [name, value] of [["role", "slider"], ["aria-label", about], ["aria-valuemin", 0], ["aria-valuemax", this.steps]])
      this.thumb.setAttribute(name, value);
    plot.append(this.range, this.thumb);
    plot.addEventListener("pointerdown", (event) => this.press(event));
    plot.addEventListener("pointermove", (event) => this.drag(event));
    plot.addEventListener("pointerup", (event) => this.release(event));
    plot.addEventListener("pointercancel", () => this.clear());
    this.thumb.addEventListener("keydown", (event) => this.key(event));
    this.clear();
  }

  // Places are slices of the axis, 0 to `steps`.
  place(event) {
    const box = this.plot.getBoundingClientRect();
    return within(((event.clientX - box.left) / box.width) * this.steps, 0, this.steps);
  }

  moment(place) {
    return Math.round(this.from + ((this.to - this.from) * place) / this.steps);
  }

  select(one, other) {
    [this.low, this.high] = [Math.floor(Math.min(one, other)), Math.ceil(Math.max(one, other))];
    if (this.low === this.high) this.high < this.steps ? this.high++ : this.low--;
    this.range.hidden = false;
    this.range.style.insetInlineStart = `${(100 * this.low) / this.steps}%`;
    this.range.style.inlineSize = `${(100 * (this.high - this.low)) / this.steps}%`;
    this.say(`${words(this.moment(this.low))} to ${words(this.moment(this.high))} UTC`, this.high);
  }

  say(text, value) {
    this.thumb.setAttribute("aria-valuetext", text);
    this.thumb.setAttribute("aria-valuenow", value);
    this.range.title = text;
  }

  clear() {
    this.start = null;
    this.low = this.high = null;
    this.range.hidden = true;
    this.say("whole range", this.steps);
  }

  apply() {
    if (this.low === null) return;
    const address = new URL(this.plot.dataset.brush, location.href);
    address.searchParams.set("since", iso(this.moment(this.low)));
    address.searchParams.set("until", iso(this.moment(this.high)));
    announce("Filtering by time");
    location.assign(address);
  }

  press(event) {
    if (event.button !== 0) return;
    this.start = { x: event.clientX, place: this.place(event) };
    this.plot.setPointerCapture(event.pointerId);
    event.preventDefault();
  }

  drag(event) {
    if (this.start && Math.abs(event.clientX - this.start.x) > DRAG_PX) this.select(this.start.place, this.place(event));
  }

  release(event) {
    if (!this.start) return;
    if (Math.abs(event.clientX - this.start.x) <= DRAG_PX) this.select(this.start.place, this.start.place);
    this.start = null;
    this.apply();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[event.key];
    if (step) {
      if (this.low === null) this.select(this.steps - 1, this.steps);
      else if (event.shiftKey) this.select(step < 0 ? within(this.low - 1, 0, this.high) : this.low, step < 0 ? this.high : within(this.high + 1, 1, this.steps));
      else if (this.low + step >= 0 && this.high + step <= this.steps) this.select(this.low + step, this.high + step);
    } else if (event.key === "Enter") this.apply();
    else if (event.key === "Escape" && this.low !== null) this.clear();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const begin = () => {
  for (const plot of document.querySelectorAll("[data-brush]")) if (!plot.querySelector(".brush-keys")) new Brush(plot);
};
begin();
document.addEventListener("htmx:after:swap", begin);
