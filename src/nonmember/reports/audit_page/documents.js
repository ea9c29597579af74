// The documents of an audit: rows as in its page's JSON, whose first entry is the id; numbers have four decimals.
pagedTable(document.getElementById("documents"), {
  rows: JSON.parse(document.getElementById("data").textContent),
  values: (row) => row,
  drawn: ([id, ...cells]) => element("tr", {}, element("th", { scope: "row" }, id), ...cells.map((cell) => typeof cell === "string"
    ? element("td", {}, cell)
    : element("td", { class: "number" }, cell === null ? DASH : cell.toFixed(4).replace("-", MINUS)))),
  what: "documents",
});
