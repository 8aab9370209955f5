// Draws each chart from the table beside it. Without this script the tables are there all the same.
"use strict";
(() => {
  const language = document.documentElement.lang;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const format = (options, times = 1) => {
    const number = new Intl.NumberFormat(language, options);
    return (value) => number.format(value * times);
  };
  const units = {
    count: format({ notation: "compact", maximumFractionDigits: 1 }),
    usd: format({ style: "currency", currency: "USD", minimumFractionDigits: 0, maximumFractionDigits: 4 }),
    share: format({ style: "percent", maximumFractionDigits: 0 }),
    ms: format({ style: "unit", unit: "second", unitDisplay: "narrow", maximumFractionDigits: 1 }, 0.001),
  };
  const HEIGHT = 180;
  const TICK = 68; // pixels that a label below the axis needs

  function read(chart) {
    const rows = [...chart.querySelectorAll("tbody tr")];
    const cells = rows.map((row) => [...row.querySelectorAll("td")]);
    const names = [...chart.querySelectorAll("thead th")].slice(1).map((each) => each.textContent);
    return {
      names,
      ticks: rows.map((row) => row.querySelector("th").dataset.tick),
      said: rows.map((row, at) => {
        const told = cells[at].map((cell, of) => (names.length > 1 ? `${names[of]} ${cell.textContent}` : cell.textContent));
        return `${row.querySelector("th").textContent}: ${told.join(" · ")}`;
      }),
      values: names.map((_, of) => cells.map((row) => (row[of].dataset.value === "" ? null : Number(row[of].dataset.value)))),
    };
  }

  function options(chart, data, readout, whole) {
    const isBars = chart.dataset.kind === "bars";
    const isCount = chart.dataset.unit === "count"; // there is no half an answer
    const write = units[chart.dataset.unit];
    const colors = [color("--accent"), color("--second")];
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: color("--soft"), font, ticks: { show: false } };
    const last = data.ticks.length - 1;
    return {
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !isBars } },
      padding: [10, 18, 0, 0],
      scales: {
        x: { time: false, range: () => [-0.6, last + 0.6] },
        y: { range: (_, __, most) => [0, chart.dataset.unit === "share" ? 1 : (most || (chart.dataset.unit === "ms" ? 2000 : 1)) * 1.1] },
      },
      axes: [
        {
          ...axis,
          size: 30,
          grid: { show: false },
          splits: (plot) => {
            const step = Math.max(1, Math.ceil((data.ticks.length * TICK) / plot.bbox.width * devicePixelRatio));
            return data.ticks.map((_, at) => at).filter((at) => at % step === 0);
          },
          values: (_, splits) => splits.map((at) => data.ticks[at]),
        },
        { ...axis, size: 60, grid: { stroke: color("--line"), width: 1 }, values: (_, splits) => splits.map((at) => (isCount && at % 1 ? "" : write(at))) },
      ],
      series: [
        {},
        ...data.names.map((name, of) => ({
          label: name,
          stroke: colors[of],
          width: isBars ? 0 : 2,
          fill: isBars ? colors[of] : undefined,
          paths: isBars ? uPlot.paths.bars({ size: [0.7, 36], radius: 0.15 }) : undefined,
          points: { show: !isBars, size: 6, fill: colors[of] },
        })),
      ],
      hooks: {
        setCursor: [(plot) => { readout.textContent = plot.cursor.idx == null ? whole : data.said[plot.cursor.idx]; }],
      },
    };
  }

  function draw(chart) {
    const place = chart.querySelector(".plot");
    const readout = chart.querySelector(".readout");
    const whole = readout.textContent;
    const data = read(chart);
    place.classList.add("drawn");
    let plot;
    const make = () => {
      plot?.destroy();
      const values = [data.ticks.map((_, at) => at), ...data.values];
      plot = new uPlot({ ...options(chart, data, readout, whole), width: place.clientWidth }, values, place);
    };
    make();
    dark.addEventListener("change", make);
    new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
  }

  document.querySelectorAll(".chart").forEach(draw);
})();
