"use strict";
// What the scripts of pages have in common. Everything that comes from results is set as text.
const DASH = "–", MINUS = "−";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// What many results have alike is there once (reports/render/sharing.py); entries refer to earlier ones alone.
function unpacked(packed, shared) {
  const restored = (value) => {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(restored);
    if ("$shared" in value) return shared[value.$shared];
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, restored(part)]));
  };
  shared.forEach((entry, index) => { shared[index] = restored(entry); });
  return packed.map(restored);
}

function flat(value, prefix = "", out = {}) {
  for (const [key, inner] of Object.entries(value || {})) {
    const name = prefix ? `${prefix}.${key}` : key;
    if (inner !== null && typeof inner === "object" && !Array.isArray(inner)) flat(inner, name, out);
    else out[name] = inner;
  }
  return out;
}

function shown(value) {
  if (value === null || value === undefined || value === "") return DASH;
  if (Array.isArray(value)) return value.length ? value.map(shown).join(", ") : DASH;
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number" && !Number.isInteger(value)) {
    const size = Math.abs(value);
    return (size >= 1e-3 && size < 1e5 ? String(+value.toPrecision(5)) : value.toExponential(2)).replace("-", size >= 1e-3 ? MINUS : "-");
  }
  return String(value);
}

// Numbers by size, else texts with the numbers in them by size; what is missing comes last either way.
function inOrder(one, other, descending) {
  const missing = (value) => value === null || value === undefined || value === "";
  if (missing(one) || missing(other)) return missing(one) - missing(other);
  const order = typeof one === "number" && typeof other === "number" ? one - other
    : String(one).localeCompare(String(other), "en", { numeric: true });
  return descending ? -order : order;
}

// A row per item, a column per fact in which they differ, and a box that shows the equal ones as well.
function differing(heads, facts) {
  const names = [...new Set(facts.flatMap((fact) => Object.keys(fact)))];
  const differ = names.filter((name) => new Set(facts.map((fact) => JSON.stringify(fact[name] ?? null))).size > 1);
  // One that only says again what another does, as a path the name of its documents, is left out.
  const within = (one, other) => facts.every((fact) => shown(fact[one]).includes(shown(fact[other])));
  const repeats = (name, index) => differ.some((other, place) => other !== name && within(name, other) && (place < index || !within(other, name)));
  const different = new Set(differ.filter((name, index) => !repeats(name, index)));
  const box = element("input", { type: "checkbox" });
  const table = element("table");
  const paint = () => {
    const columns = names.filter((name) => box.checked || different.has(name));
    const head = element("tr", {}, element("th", { scope: "col" }, ""), ...columns.map((name) => element("th", { scope: "col" }, name)));
    const rows = facts.map((fact, index) => element("tr", {}, element("th", { scope: "row" }, heads[index]),
      ...columns.map((name) => element("td", { "data-of": name }, shown(fact[name])))));
    table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  };
  box.addEventListener("change", paint);
  paint();
  return {
    table,
    toggle: element("label", {}, box, " show also what is equal"),
    number: different.size,
  };
}
