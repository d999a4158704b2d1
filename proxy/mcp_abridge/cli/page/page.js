"use strict";

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
  const fit = () => chart.clientWidth && plot.setSize({ width: chart.clientWidth, height: 260 });
  new ResizeObserver(fit).observe(chart);
  // The theme is the system's.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
