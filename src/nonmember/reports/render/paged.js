// A table that is searched, sorted and shown a page at a time, so that thousands of rows cost no more than one page.
const ROWS_OF_A_PAGE = 25;

// root: holds a search field, an output, a table whose header names the columns, and buttons back and forth with a place
// between them.   rows: what is shown.   values(row): one per column, to sort by, and where it is text to search by.
// drawn(row): its <tr>.   what: rows are.   more(row): whether what else is asked for lets it pass.
// Returns the rows that pass, and a function that shows them anew.
function pagedTable(root, { rows, values, drawn, what, more = () => true }) {
  const search = root.querySelector("input[type=search]"), told = root.querySelector("output");
  const table = root.querySelector("table"), pages = root.querySelector(".pages");
  const [back, forth] = pages.querySelectorAll("button"), at = pages.querySelector("span");
  const headers = [...table.tHead.querySelectorAll("[data-column]")];
  const entries = rows.map((row) => ({ row, values: values(row) }));
  for (const entry of entries) entry.text = entry.values.filter((value) => typeof value === "string").join(" ").toLowerCase();
  const state = { sorted: entries, passing: entries, column: null, descending: false, page: 0 };

  function show(page = 0) {
    const last = Math.max(0, Math.ceil(state.passing.length / ROWS_OF_A_PAGE) - 1);
    state.page = Math.min(Math.max(page, 0), last);
    const first = state.page * ROWS_OF_A_PAGE;
    table.tBodies[0].replaceChildren(...state.passing.slice(first, first + ROWS_OF_A_PAGE).map((entry) => drawn(entry.row)));
    const number = (value) => value.toLocaleString("en");
    told.textContent = `${number(state.passing.length)} of ${number(rows.length)} ${what}`;
    pages.hidden = last === 0;
    at.textContent = `page ${number(state.page + 1)} of ${number(last + 1)}`;
    [back.disabled, forth.disabled] = [state.page === 0, state.page === last];
  }
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/);
    state.passing = state.sorted.filter((entry) => words.every((word) => entry.text.includes(word)) && more(entry.row));
    show();
  }
  function sort(header) {
    const column = Number(header.dataset.column);
    state.descending = state.column === column && !state.descending;
    state.column = column;
    state.sorted = [...entries].sort((one, other) => inOrder(one.values[column], other.values[column], state.descending));
    for (const item of headers) {
      item.setAttribute("aria-sort", item === header ? (state.descending ? "descending" : "ascending") : "none");
    }
    filter();
  }

  for (const header of headers) {
    header.append(element("button", { type: "button", onclick: () => sort(header) }, ...header.childNodes));
    header.setAttribute("aria-sort", "none");
  }
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  root.querySelector("form").addEventListener("input", filter);
  back.addEventListener("click", () => show(state.page - 1));
  forth.addEventListener("click", () => show(state.page + 1));
  root.querySelector("form").hidden = false;
  show();
  return { passing: () => state.passing.map((entry) => entry.row), show: () => show(state.page) };
}
