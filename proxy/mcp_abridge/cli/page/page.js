"use strict";

// Sorting: a button in each heading of a table of sums.
for (const table of document.querySelectorAll("table:not(#rows)")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    if (table.tBodies[0].rows[0]?.cells[column].dataset.value) heading.className = "number";
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, headings, column));
    heading.append(button);
  });
}

function sort(table, headings, column) {
  const heading = headings[column];
  const numbers = heading.className === "number";
  const order = heading.getAttribute("aria-sort");
  const descending = order ? order === "ascending" : numbers;
  const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const rows = [...table.tBodies[0].rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    return (numbers ? a - b : a.localeCompare(b)) * (descending ? -1 : 1);
  });
  table.tBodies[0].append(...rows);
  for (const each of headings) each.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

// The chart shows the table below it.
const chart = document.getElementById("chart");
const rows = [...document.querySelectorAll("#times tbody tr")];
const names = rows.map((row) => row.cells[0].textContent);
const hours = names.some((name) => name.includes(" "));
const step = hours ? 3600 : 86400;
const times = names.map((name) => new Date(name.replace(" ", "T") + (hours ? "" : "T00:00")) / 1000);
const column = (number) => rows.map((row) => Number(row.cells[number].dataset.value));
const data = [times, column(2), column(3)];

function size(bytes) {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 4);
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

const format = uPlot.fmtDate(hours ? "{HH}:{mm}" : "{D} {MMM}");
const calendar = {
  incrs: (hours ? [1, 2, 3, 6, 12] : [1, 2, 7, 14, 30, 91]).map((count) => count * step),
  values: (_, marks) => marks.map((mark) => format(new Date(mark * 1000))),
};

let plot;
function draw() {
  const color = (key, property) => getComputedStyle(document.querySelector(key))[property];
  const axis = {
    stroke: color("h2 + p", "color"),
    font: `13px ${color("body", "fontFamily")}`,
    grid: { stroke: color("section", "borderTopColor"), width: 1 },
    ticks: { show: false },
  };
  const bars = uPlot.paths.bars({ size: [0.7, 56] });
  const series = (label, bar) => ({
    label,
    paths: bars,
    fill: color(bar, "fill"),
    stroke: color(bar, "fill"),
    points: { show: false },
    value: (_, bytes) => (bytes == null ? "–" : size(bytes)),
  });
  plot?.destroy();
  plot = new uPlot(
    {
      width: chart.clientWidth,
      height: 260,
      scales: { x: { range: [times[0] - step, times.at(-1) + step] }, y: { range: [0, null] } },
      axes: [
        { ...axis, ...calendar },
        { ...axis, size: 70, values: (_, marks) => marks.map(size) },
      ],
      series: [
        { label: "Time", value: (_, mark, __, index) => (index == null ? "–" : names[index]) },
        series("Servers sent", "svg rect"),
        series("Model read", "svg .part"),
      ],
      cursor: { drag: { x: false }, points: { show: false } },
    },
    data,
    chart,
  );
}

if (chart) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const fit = () => plot.setSize({ width: chart.clientWidth, height: 260 });
  new ResizeObserver(fit).observe(chart);
}
