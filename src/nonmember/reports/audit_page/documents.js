// The documents of an audit: rows as in its page's JSON, whose first entry is the id; numbers have four decimals, counts
// none.
(() => {
  const rows = JSON.parse(document.getElementById("data").textContent);
  const isCount = rows[0].map((_, column) => rows.every((row) => row[column] === null || Number.isInteger(row[column])));
  const printed = (value, column) => (value === null ? DASH
    : isCount[column] ? value.toLocaleString("en") : value.toFixed(4)).replace("-", MINUS);
  const root = document.getElementById("documents");
  pagedTable(root, {
    rows,
    values: (row) => row,
    drawn: ([id, ...cells]) => element("tr", {}, element("th", { scope: "row" }, id), ...cells.map((cell, index) => typeof cell === "string"
      ? element("td", {}, cell)
      : element("td", { class: "number" }, printed(cell, index + 1)))),
    what: root.dataset.what,
  });
})();
