// The explorer: filters, sorting, comparison and details. Everything that comes from results is set as text.
(() => {
  const { runs: packed, shared } = JSON.parse(document.getElementById("data").textContent);
  const runs = unpacked(packed, shared);
  const form = document.getElementById("filters");
  const told = document.getElementById("told");
  const panel = document.getElementById("compare");
  const results = document.getElementById("results");
  const body = results.tBodies[0];
  const headers = [...results.tHead.querySelectorAll("[data-sort]")];
  const CHOICES = ["world", "sweep", "method", "verdict", "truth"];

  const entries = runs.map((run) => ({ run, row: document.getElementById(run.anchor), text: words(run) }));
  const byAnchor = new Map(entries.map((entry) => [entry.run.anchor, entry]));
  const state = { q: "", only: [], pick: [], sort: "", dir: "ascending", false: false };
  CHOICES.forEach((name) => { state[name] = ""; });

  function words(run) {
    const asked = run.question;
    const parts = [asked.corpus, asked.target, asked.reference, asked.heldout, asked.method, asked.score,
      run.verdict.decision, asked.world, asked.sweep, asked.cell, asked.truth, run.path, run.domain,
      `seed=${asked.seed}`,
      ...Object.entries(flat(asked.data)).map(([key, value]) => `${key}=${value}`),
      ...Object.entries(flat(asked.settings)).map(([key, value]) => `${key}=${value}`)];
    return parts.join(" ").toLowerCase();
  }
  const fact = (run, name) => (name === "verdict" ? run.verdict.decision : run.question[name]) || "unknown";
  const isFalse = (run) => run.false_claim !== "";

  // ------------------------------------------------------------------------------------- filter and sort
  function passes({ run, text }) {
    if (state.only.length && !state.only.includes(run.anchor)) return false;
    if (state.false && !isFalse(run)) return false;
    if (CHOICES.some((name) => state[name] && fact(run, name) !== state[name])) return false;
    return state.q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }
  function filter() {
    let count = 0;
    for (const entry of entries) {
      const visible = passes(entry);
      entry.row.hidden = !visible;
      if (entry.more) entry.more.hidden = !visible;
      count += visible;
    }
    told.replaceChildren(`${count} of ${runs.length} results`);
    if (state.only.length) {
      told.append(` – those behind one number`, element("button", { type: "button", onclick: () => { state.only = []; changed(); } }, "show all"));
    }
  }
  function inColumn({ question, statistics, verdict }, name) {
    if (name === "statistic") return statistics.value;
    if (name === "verdict") return verdict.decision;
    return name in question ? question[name] : statistics[name];
  }
  function sort() {
    const by = (one, other) => inOrder(inColumn(one.run, state.sort), inColumn(other.run, state.sort), state.dir === "descending");
    const sorted = state.sort ? [...entries].sort(by) : entries;
    const fragment = document.createDocumentFragment();
    for (const entry of sorted) fragment.append(entry.row, ...(entry.more ? [entry.more] : []));
    body.append(fragment);
    for (const header of headers) header.setAttribute("aria-sort", header.dataset.sort === state.sort ? state.dir : "none");
  }

  // ------------------------------------------------------------------------------- state in the address
  function remember() {
    const parts = new URLSearchParams();
    for (const name of ["q", ...CHOICES, "sort"]) if (state[name]) parts.set(name, state[name]);
    if (state.sort && state.dir === "descending") parts.set("dir", "descending");
    if (state.false) parts.set("false", "1");
    for (const name of ["only", "pick"]) if (state[name].length) parts.set(name, state[name].join(","));
    const text = parts.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", text ? `#runs?${text}` : "#runs");
  }
  function recall(text) {
    const parts = new URLSearchParams(text);
    for (const name of ["q", ...CHOICES]) state[name] = parts.get(name) || "";
    state.sort = headers.some((header) => header.dataset.sort === parts.get("sort")) ? parts.get("sort") : "";
    state.dir = parts.get("dir") === "descending" ? "descending" : "ascending";
    state.false = parts.has("false");
    for (const name of ["only", "pick"]) {
      state[name] = (parts.get(name) || "").split(",").filter((anchor) => byAnchor.has(anchor));
    }
  }
  function fill() {
    for (const name of ["q", ...CHOICES]) form.elements[name].value = state[name];
    form.elements.false.checked = state.false;
    for (const { run, box } of entries) box.checked = state.pick.includes(run.anchor);
  }
  function changed() { filter(); compare(); remember(); }
  function arrive() {
    const hash = decodeURIComponent(location.hash.slice(1));
    if (byAnchor.has(hash)) {
      const entry = byAnchor.get(hash);
      if (!passes(entry)) { recall(""); fill(); sort(); filter(); compare(); }
      open(entry, true);
      document.querySelectorAll(".at").forEach((row) => row.classList.remove("at"));
      entry.row.classList.add("at");
      entry.row.scrollIntoView({ block: "start", inline: "nearest" });
      entry.button.focus({ preventScroll: true });
    } else if (hash.startsWith("runs?")) {
      recall(hash.slice(5));
      fill(); sort(); filter(); compare();
      document.getElementById("runs").scrollIntoView();
    }
  }

  // --------------------------------------------------------------------------------------------- details
  function list(pairs) {
    return element("dl", {}, ...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, shown(value))]));
  }
  function part(title, pairs) {
    return pairs.length ? element("div", {}, element("h3", {}, title), list(pairs)) : null;
  }
  function details(run) {
    const pairs = (value) => Object.entries(flat(value));
    const { question, statistics, verdict, health, exclusions, provenance } = run;
    return element("div", { class: "facts-of-run" },
      element("div", { class: "whole" },
        element("p", { class: "claim" }, verdict.allowed_claim),
        verdict.warnings.length ? element("ul", {}, ...verdict.warnings.map((text) => element("li", {}, text))) : null),
      part("Numbers", [[statistics.name, statistics.value], ["interval", [statistics.ci_low, statistics.ci_high]],
        ["p", statistics.p_value], ["alpha", question.alpha], ["null hypothesis", question.null_hypothesis || null],
        ["documents", statistics.num_documents], ["excluded", exclusions.num_documents],
        ["tokens", statistics.num_tokens], ["seed", question.seed], ["held-out set", question.heldout],
        ["seconds", provenance.seconds]]),
      part("Settings", pairs(question.settings)),
      part("Data", pairs(question.data)),
      part("Models", pairs(question.models)),
      part("Capability", pairs(health.capability)),
      part("Health of what was trained", pairs(health.training)),
      part("Guarded against in the scores", pairs(health.counters)),
      part("Details", pairs(statistics.details)),
      part("Dropped from the corpus", pairs(exclusions.dropped)),
      part("Excluded documents", pairs(exclusions.documents)),
      part("Made for it", pairs(provenance.made)),
      part("Keys", pairs(provenance.keys)),
      part("Versions", pairs(provenance.versions)),
      part("File", [["path", run.path], ["sha256", run.sha256]]));
  }
  function open(entry, wanted) {
    const isOpen = entry.button.getAttribute("aria-expanded") === "true";
    if (isOpen === wanted) return;
    entry.button.setAttribute("aria-expanded", String(wanted));
    if (!wanted) { entry.more.remove(); entry.more = null; return; }
    const cell = element("td", { colspan: results.tHead.rows[0].cells.length }, details(entry.run));
    entry.more = element("tr", { class: "more", id: `${entry.run.anchor}-more` }, cell);
    entry.row.after(entry.more);
  }

  // ------------------------------------------------------------------------------------------ comparison
  function intervals(picked) {
    const picture = (run) => byAnchor.get(run.anchor).row.querySelector("td.axis svg").cloneNode(true);
    const ticks = results.tHead.querySelector(".axis svg").cloneNode(true);
    const line = (run) => element("tr", {}, element("th", { scope: "row" }, title(run)), element("td", { class: "axis" }, picture(run)),
      element("td", {}, `${signed(run.statistics.value)} [${signed(run.statistics.ci_low)}, ${signed(run.statistics.ci_high)}]`));
    return element("table", { class: "intervals" }, element("tbody", {}, ...picked.map(line),
      element("tr", { "aria-hidden": "true" }, element("td"), element("td", { class: "axis" }, ticks), element("td"))));
  }
  const title = (run) => `${run.question.corpus} under ${run.question.target || DASH}`;
  const signed = (value) => (value === null ? DASH : (value > 0 ? "+" : "") + value.toFixed(3).replace("-", "−"));
  function compare() {
    const picked = state.pick.map((anchor) => byAnchor.get(anchor).run);
    panel.hidden = picked.length === 0;
    if (picked.length === 0) { panel.replaceChildren(); return; }
    const clear = element("button", { type: "button", onclick: () => { state.pick = []; fill(); changed(); } }, "Clear selection");
    if (picked.length === 1) {
      panel.replaceChildren(element("header", {}, element("h3", {}, "One result chosen; choose another to compare"), clear));
      return;
    }
    const facts = picked.map(({ question, statistics, verdict, health, provenance }) => flat({
      set: question.corpus, target: question.target, reference: question.reference, heldout: question.heldout,
      method: question.method, score: question.score, statistic: statistics.value,
      ci_low: statistics.ci_low, ci_high: statistics.ci_high, p: statistics.p_value,
      verdict: verdict.decision.replaceAll("_", " "), truth: question.truth, documents: statistics.num_documents,
      tokens: statistics.num_tokens, world: question.world, sweep: question.sweep, seed: question.seed,
      data: question.data, settings: question.settings, models: question.models,
      capability: health.capability, health: health.training, keys: provenance.keys, versions: provenance.versions }));
    const heads = picked.map((run) => element("a", { href: `#${run.anchor}` }, title(run)));
    const { table, toggle, number } = differing(heads, facts);
    panel.replaceChildren(
      element("header", {}, element("h3", {}, `${picked.length} results, ${number} facts differ`), toggle, clear),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison" }, intervals(picked), table));
  }

  // ------------------------------------------------------------------------------- tables with a choice of rows
  function choosable(chooser) {
    const rows = [...chooser.parentElement.querySelector("tbody").rows];
    const search = chooser.querySelector("input[type=search]");
    const word = (row, place) => row.cells[place.dataset.column].textContent.trim();
    const selected = (row, select) => {
      const values = [...select.options].map((option) => option.value);
      return "rising" in select.dataset ? values.indexOf(word(row, select)) <= values.indexOf(select.value) : word(row, select) === select.value;
    };
    const had = (row, field) => {
      const boxes = [...field.querySelectorAll("input")];
      return boxes.every((box) => box.checked || !word(row, field).split(", ").includes(box.value));
    };
    const take = () => {
      for (const row of rows) {
        row.hidden = !(row.cells[0].textContent.toLowerCase().includes(search.value.toLowerCase())
          && [...chooser.querySelectorAll("select")].every((select) => !select.value || selected(row, select))
          && [...chooser.querySelectorAll("fieldset")].every((field) => had(row, field)));
      }
      chooser.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    chooser.addEventListener("input", take);
    chooser.addEventListener("submit", (event) => event.preventDefault());
    chooser.hidden = false;
    take();
  }
  document.querySelectorAll("form.choose").forEach(choosable);

  // ----------------------------------------------------------------------------------------------- begin
  entries.forEach((entry) => {
    const [first, name] = entry.row.cells;
    entry.box = element("input", { type: "checkbox", "aria-label": `Compare ${title(entry.run)}`,
      onchange: () => {
        state.pick = entry.box.checked ? [...state.pick, entry.run.anchor] : state.pick.filter((anchor) => anchor !== entry.run.anchor);
        compare(); remember();
      } });
    first.append(entry.box);
    entry.button = element("button", { type: "button", "aria-expanded": "false",
      onclick: () => open(entry, entry.button.getAttribute("aria-expanded") !== "true") }, name.textContent);
    name.replaceChildren(entry.button);
  });
  for (const header of headers) {
    const button = element("button", { type: "button", onclick: () => {
      state.dir = state.sort === header.dataset.sort && state.dir === "ascending" ? "descending" : "ascending";
      state.sort = header.dataset.sort;
      sort(); remember();
    } }, ...header.childNodes);
    header.append(button);
    header.setAttribute("aria-sort", "none");
  }
  form.hidden = false;
  const take = () => {
    for (const name of ["q", ...CHOICES]) state[name] = form.elements[name].value;
    state.false = form.elements.false.checked;
    changed();
  };
  form.addEventListener("input", take);
  form.addEventListener("change", take);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    recall(""); fill(); sort(); changed();
    history.replaceState(null, "", "#runs");
  });

  const theme = document.getElementById("theme");
  const THEMES = ["automatic", "light", "dark"];
  const read = () => { try { return localStorage.getItem("nonmember-theme") || "automatic"; } catch { return "automatic"; } };
  const apply = (name) => {
    if (name === "automatic") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "automatic") + 1) % THEMES.length];
    try { localStorage.setItem("nonmember-theme", next); } catch { /* private windows forget */ }
    apply(next);
  });
  apply(THEMES.includes(read()) ? read() : "automatic");
  if (matchMedia("(max-width: 46rem)").matches) document.querySelector(".contents details").open = false;

  sort(); filter();
  addEventListener("hashchange", arrive);
  arrive();
})();
