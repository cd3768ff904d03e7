/* Tables sort by a click on a column's title, and a long one filters its rows by words; wide pictures stay readable. */
"use strict";

const number = text => parseFloat(text.replace("−", "-").replace(/^[^\d.+-]*/, ""));

function sortable(table) {
  for (const [column, title] of [...table.tHead.rows[0].cells].entries()) {
    const sort = document.createElement("button");
    sort.append(...title.childNodes);
    title.append(sort);
    sort.addEventListener("click", () => {
      const down = title.ariaSort === "ascending" ? -1 : 1;
      for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
      title.ariaSort = down === 1 ? "ascending" : "descending";
      const text = row => (row.cells[column]?.textContent ?? "").trim();
      const order = (a, b) => {
        const [x, y] = [number(text(a)), number(text(b))];
        if (Number.isNaN(x) && Number.isNaN(y)) return down * text(a).localeCompare(text(b));
        return Number.isNaN(x) ? 1 : Number.isNaN(y) ? -1 : down * (x - y);  // what is no number stays below
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    });
  }
}

function filterable(table) {
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "rows with the words ..." });
  field.className = "filter";
  field.ariaLabel = "show only rows with these words";
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
  });
  (table.closest(".table-wrapper") ?? table).before(field);
}

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 3) continue;
    sortable(table);
    if (table.tBodies[0].rows.length > 14) filterable(table);
  }
});

// A table that is wider than its page takes forms (site.css) until it fits; in a narrow window its rows become lists.
function fitTable(table) {
  const box = table.closest(".table-wrapper") ?? table.parentElement;
  const isWide = () => box.scrollWidth > box.clientWidth + 1;
  const titles = [...(table.tHead?.rows[0].cells ?? [])].map(title => title.textContent.trim());
  const cells = [...table.tBodies[0].rows].flatMap(row => [...row.cells]);
  if (isWide()) table.classList.add("wrapped");
  if (isWide() && innerWidth < 600) {
    table.classList.add("lists");
    for (const cell of cells) {
      cell.dataset.title = titles[cell.cellIndex] ?? "";
      cell.hidden = !cell.textContent.trim();
    }
  } else if (isWide()) {
    table.classList.add("close");
    if (isWide()) for (const cell of cells) cell.innerHTML = cell.innerHTML.replaceAll("&nbsp;", " ");  // intervals wrap
    if (isWide()) table.classList.add("tight");
  }
}

// A picture whose text begins with "Left:" is two panels side by side of one width.
const LEFT = 0.495;

function stackPanels(picture) {
  for (const start of [0, LEFT]) {
    const panel = document.createElement("span"), half = picture.cloneNode();
    panel.className = "panel";
    panel.style.display = "block";
    half.style.cssText = `width: ${100 / LEFT}%; margin-left: ${-100 * start / LEFT}%`;
    if (start) half.alt = "";
    panel.append(half);
    picture.before(panel);
  }
  picture.remove();
}

addEventListener("load", () => {
  document.querySelectorAll("article table").forEach(fitTable);
  for (const picture of document.querySelectorAll("article p > img")) {
    if (innerWidth < 600 && /^Left: /.test(picture.alt)) {
      stackPanels(picture);
      continue;
    }
    picture.parentElement.classList.add("picture");  // scrolls where the window is narrower
    picture.style.minWidth = `${0.4 * picture.naturalWidth}px`;  // letters of 8 points keep 7 pixels
  }
});
