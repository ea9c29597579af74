// The page over many audits: filters beside search and sorting, and a comparison of those that are chosen.
(() => {
  const { audits: packed, shared, verdicts } = JSON.parse(document.getElementById("data").textContent);
  const audits = unpacked(packed, shared);
  const root = document.getElementById("main"), panel = document.getElementById("compare");
  const form = root.querySelector("form");
  const chosen = new Set();
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [360, 270, 52, 12, 12, 44]; // as reports/audit_page/svg.py has them

  // An audit is named by what differs: plain where the value names it, with its key where it is a number.
  const about = ({ method, corpus, target, reference, axes, facts }) => ({ method, corpus, target, reference,
    ...Object.fromEntries(["k", "lambda", "tau"].map((axis) => [axis, axes[axis] ?? null])), score: facts.score, seed: facts.seed });
  const differs = Object.keys(audits.length ? about(audits[0]) : {})
    .filter((key) => new Set(audits.map((audit) => about(audit)[key] || null).filter((value) => value !== null)).size > 1);
  const name = (audit) => differs.filter((key) => about(audit)[key])
    .map((key) => (typeof about(audit)[key] === "number" ? `${key} ${shown(about(audit)[key])}` : about(audit)[key]))
    .join(" · ") || audit.corpus;
  const heading = (audit) => element("span", {},
    audit.page === null ? name(audit) : element("a", { href: audit.page }, name(audit)), element("small", {}, audit.folder));
  const words = (audit) => (verdicts[audit.decision] || ["?", audit.decision]);

  // ------------------------------------------------------------------------------------------------- the table
  function drawn(audit) {
    const box = element("input", { type: "checkbox", "aria-label": `Compare ${name(audit)}`,
      onchange: () => { chosen[box.checked ? "add" : "delete"](audit); row.classList.toggle("chosen", box.checked); compare(); } });
    box.checked = chosen.has(audit);
    const [sign, told] = words(audit);
    const cell = (of, text, kind = null) => element("td", { "data-of": of, class: kind }, ...(text === null || text === "" ? [] : [text]));
    const row = element("tr", { class: box.checked ? "chosen" : null }, element("td", {}, box),
      element("th", { scope: "row" }, heading(audit)),
      element("td", { class: `v-${audit.decision}`, title: audit.claim }, `${sign} ${told}`, audit.false ? element("b", { class: "wrong" }, `† ${audit.false}`) : null,
        audit.unlearned ? element("b", { class: "wrong", role: "img", ...meant(`Training did not lower the ${audit.unlearned}`) }, "⊖") : null),
      cell("p", audit.p === null ? null : audit.p_printed, "number"),
      element("td", { "data-of": audit.statistic || null, class: "number" },
        ...(audit.value === null ? [] : [audit.printed, element("small", {}, audit.statistic)])),
      cell("interval", audit.interval || null, "number"),
      cell("dose", audit.dose || null, "number"),
      cell("documents", audit.n.toLocaleString("en"), "number"),
      element("td", {}, warnings(audit.warnings)),
      cell("made", audit.written.slice(0, 16), "number"));
    return row;
  }
  function meant(meaning) { return { title: meaning, "aria-label": meaning }; }
  function warnings(texts) {
    if (texts.length === 0) return null;
    return element("details", {}, element("summary", {}, `${texts.length} ${texts.length > 1 ? "warnings" : "warning"}`), ...texts.map((text) => element("p", {}, text)));
  }

  // ----------------------------------------------------------------------------------------------- comparison
  function compare() {
    const picked = audits.filter((audit) => chosen.has(audit));
    panel.hidden = picked.length === 0;
    const clear = element("button", { type: "button", onclick: () => { chosen.clear(); table.show(); compare(); } }, "Clear selection");
    if (picked.length < 2) {
      panel.replaceChildren(element("header", {}, element("h3", {}, "One audit chosen; choose another to compare"), clear));
      return;
    }
    const facts = picked.map((audit) => flat({ answer: words(audit)[1], p: audit.p_printed, [audit.statistic || "statistic"]: audit.printed,
      interval: audit.interval, documents: audit.corpus, target: audit.target, method: audit.method, reference: audit.reference,
      dose: audit.dose, n: audit.n, warnings: audit.warnings.length, ...audit.facts }));
    const { table: side, toggle, number } = differing(picked.map(heading), facts);
    panel.replaceChildren(
      element("header", {}, element("h3", {}, `${picked.length} audits, ${number} settings and results differ`), toggle, clear),
      element("div", { class: "plots" }, ...curves(picked)),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Comparison" }, side));
  }

  // --------------------------------------------------------------------------------------------------- curves
  // One picture per axis on which the chosen audits differ and per statistic; lines join what is equal in all else.
  function curves(picked) {
    const known = picked.filter((audit) => audit.value !== null && audit.value !== undefined);
    const found = [];
    for (const axis of ["k", "lambda", "tau", "dose", "documents"]) {
      for (const statistic of new Set(known.map((audit) => audit.statistic))) {
        const points = known.filter((audit) => audit.statistic === statistic && typeof audit.axes[axis] === "number");
        if (new Set(points.map((audit) => audit.axes[axis])).size > 1) found.push(curve(axis, statistic, points));
      }
    }
    return found;
  }
  function series(axis, points) {
    const about = (audit) => ({ method: audit.method, documents: audit.corpus, reference: audit.reference,
      ...(axis === "dose" ? {} : { target: audit.target }), seed: audit.facts.seed,
      ...Object.fromEntries(Object.entries(audit.axes).filter(([key]) => key !== axis && key !== "documents" && !(key === "dose" && axis !== "dose"))) });
    const facts = points.map(about);
    const differ = Object.keys(facts[0]).filter((key) => new Set(facts.map((fact) => fact[key])).size > 1);
    const groups = new Map();
    points.forEach((audit, index) => {
      const label = differ.map((key) => `${key} = ${shown(facts[index][key])}`).join(", ");
      groups.set(label, [...(groups.get(label) || []), audit]);
    });
    return new Map([...groups].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true })));
  }
  function curve(axis, statistic, points) {
    const ends = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const room = (high - low) * 0.05 || Math.abs(high) * 0.5 || 1;
      return [low - room, high + room];
    };
    const [left, right] = ends(points.map((audit) => audit.axes[axis]));
    const [low, high] = ends([0, ...points.flatMap((audit) => [audit.value, audit.low, audit.high]).filter((value) => typeof value === "number")]);
    const x = (value) => LEFT + (value - left) / (right - left) * (WIDTH - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
    const groups = series(axis, points);
    const marks = [svg("line", { class: "zero", x1: LEFT, x2: WIDTH - RIGHT, y1: y(0), y2: y(0) })];
    [...groups.values()].forEach((members, index) => {
      const sorted = [...members].sort((one, other) => one.axes[axis] - other.axes[axis]);
      const path = sorted.map((audit, place) => `${place ? "L" : "M"}${x(audit.axes[axis])} ${y(audit.value)}`).join("");
      const group = svg("g", { class: `s${index % 6}` }, svg("path", { class: "curve", d: path }));
      for (const audit of sorted) {
        const at = x(audit.axes[axis]);
        if (typeof audit.low === "number" && typeof audit.high === "number") {
          group.append(svg("line", { class: "ends", x1: at, x2: at, y1: y(audit.low), y2: y(audit.high) }));
        }
        group.append(svg("circle", { cx: at, cy: y(audit.value), r: 3.2 }));
      }
      marks.push(group);
    });
    const label = (text, attributes) => svg("text", { class: "tick", ...attributes }, text);
    const title = `${statistic} by ${axis}`;
    const frame = svg("svg", { role: "img", "aria-label": title, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot" }, ...marks,
      svg("path", { class: "axes", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
      ...ticks(left, right).map((value) => label(shown(value), { x: x(value), y: HEIGHT - BOTTOM + 15 })),
      ...ticks(low, high).map((value) => label(shown(value), { class: "tick end", x: LEFT - 6, y: y(value) + 3.5 })),
      svg("text", { class: "label", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8 }, axis));
    const named = [...groups.keys()].map((text, index) => element("span", {}, element("i", { class: `s${index % 6}` }), text));
    return element("figure", {}, element("figcaption", { class: "title" }, title), frame,
      groups.size > 1 ? element("p", { class: "key" }, ...named) : null);
  }
  function svg(kind, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  function ticks(low, high) {
    const power = 10 ** Math.floor(Math.log10(high - low));
    const within = (step) => Array.from({ length: Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1 },
      (_, index) => Number(((Math.ceil(low / step - 1e-9) + index) * step).toPrecision(12)));
    return [5, 2, 1, 0.5, 0.2, 0.1].map((factor) => within(factor * power)).find((found) => found.length >= 4);
  }

  // ---------------------------------------------------------------------------------------------------- begin
  const table = pagedTable(root, {
    rows: audits,
    values: (audit) => [`${audit.method} ${audit.corpus} ${audit.target} ${name(audit)} ${audit.folder}`, words(audit)[1], audit.p, audit.value, audit.low,
      audit.dose, audit.n, audit.warnings.length, audit.written],
    drawn,
    what: "audits",
    more: (audit) => ["method", "decision"].every((key) => !form.elements[key].value || audit[key] === form.elements[key].value),
  });
  document.getElementById("all").addEventListener("click", () => {
    table.passing().forEach((audit) => chosen.add(audit));
    table.show();
    compare();
  });
})();
