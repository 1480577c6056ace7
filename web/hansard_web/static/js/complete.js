// Completion of keys and values in the filter box: an ARIA combobox with a list below it.
const MOST = 8;
const WAIT_MS = 120;
const ENDS = { duration: ">", cost: ">" };
const EXAMPLES = { since: ["15m", "1h", "24h", "7d", "30d"], until: ["1h", "24h", "7d"], duration: ["1s", "10s", "1m"], cost: ["0.01", "0.1", "1"] };

const input = document.querySelector("[data-complete]");
const keys = input?.dataset.complete.split(" ") ?? [];
const list = document.createElement("ul");
const state = { options: [], active: -1, timer: 0, request: null };

// The word at the caret: its key and value as far as typed, and where it begins.
const typed = () => {
  const before = input.value.slice(0, input.selectionStart);
  const last = before.match(/(?:[^\s"]|"[^"]*"?)+|\s+/g)?.at(-1) ?? "";
  const word = last.trim() ? last : "";
  const from = before.length - word.length;
  const found = /^([a-z_]+)(:|>=?)"?([^"]*)$/.exec(word);
  return found && keys.includes(found[1])
    ? { from, key: found[1], sign: found[2], value: found[3] }
    : { from, key: null, value: word };
};

const close = () => {
  clearTimeout(state.timer);
  state.request?.abort();
  state.options = [];
  state.active = -1;
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
};

const mark = (number) => {
  state.active = number;
  [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === number)));
  if (number < 0) input.removeAttribute("aria-activedescendant");
  else {
    input.setAttribute("aria-activedescendant", `q-option-${number}`);
    list.children[number].scrollIntoView({ block: "nearest" });
  }
};

const show = (options) => {
  if (!options.length) return close();
  state.options = options;
  list.replaceChildren(
    ...options.map(({ label, note }, number) => {
      const item = document.createElement("li");
      item.id = `q-option-${number}`;
      item.setAttribute("role", "option");
      const name = document.createElement("span");
      name.className = "cut";
      name.textContent = label;
      item.append(name);
      if (note) {
        const beside = document.createElement("span");
        beside.className = "num dim";
        beside.textContent = note;
        item.append(beside);
      }
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        insert(number);
      });
      return item;
    }),
  );
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
  mark(-1);
};

const insert = (number) => {
  const { from } = typed();
  const { text } = state.options[number];
  const after = input.value.slice(input.selectionStart);
  input.value = input.value.slice(0, from) + text + after.trimStart();
  input.setSelectionRange(from + text.length, from + text.length);
  close();
  input.dispatchEvent(new Event("input", { bubbles: true }));
};

const values = async ({ key, sign, value }) => {
  const option = (one, note = "") => ({ label: one, note, text: `${key}${sign}${/\s/.test(one) ? `"${one}"` : one} ` });
  if (EXAMPLES[key]) return EXAMPLES[key].filter((one) => one.startsWith(value)).map((one) => option(one));
  state.request = new AbortController();
  const query = new URLSearchParams({ like: value, limit: MOST });
  const answer = await fetch(`/v1/facets/${key}?${query}`, { signal: state.request.signal });
  if (!answer.ok) return [];
  const { items } = await answer.json();
  return items.filter((one) => !one.value.includes('"')).map((one) => option(one.value, one.runs?.toLocaleString("en") ?? ""));
};

const suggest = async (all = false) => {
  const word = typed();
  state.request?.abort();
  if (word.key === null) {
    const found = word.value || all ? keys.filter((key) => key.startsWith(word.value)) : [];
    return show(found.map((key) => ({ label: key + (ENDS[key] ?? ":"), text: key + (ENDS[key] ?? ":") })));
  }
  try {
    show(await values(word));
  } catch (error) {
    if (error.name !== "AbortError") close();
  }
};

const move = (step) => {
  const count = state.options.length;
  if (!count) return void suggest(true);
  mark(state.active < 0 && step < 0 ? count - 1 : (state.active + step + count) % count);
};

const onKey = (event) => {
  if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp" && state.options.length) move(-1);
  else if (["Enter", "Tab"].includes(event.key) && state.active >= 0) insert(state.active);
  else if (event.key === "Escape" && state.options.length) close();
  else return;
  event.preventDefault();
  event.stopPropagation();
};

if (input) {
  list.id = "q-options";
  list.className = "completions";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  const about = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id };
  for (const [name, value] of Object.entries(about)) input.setAttribute(name, value);
  input.closest(".filter-box").append(list);
  input.addEventListener("keydown", onKey);
  input.addEventListener("blur", close);
  input.addEventListener("input", () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(suggest, WAIT_MS);
  });
}
