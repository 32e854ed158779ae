"use strict";
// Charts on uPlot: axes and scales are uPlot's; lines and marks are drawn here, because a mark's shape has a meaning.
const Charts = (() => {
  const COLOURS = ["--one", "--two", "--three", "--four", "--five", "--six"];
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const styleOf = n => ({colour: colour(COLOURS[n % COLOURS.length]), dash: DASHES[n % DASHES.length], shape: n % 5});

  // Circle, square, triangle, diamond, triangle down: whoever sees no colors tells lines apart by them.
  function shape(ctx, kind, x, y, r) {
    const corners = [null, [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[0, -1.25], [1.15, .9], [-1.15, .9]],
      [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]], [[0, 1.25], [1.15, -.9], [-1.15, -.9]]][kind];
    ctx.beginPath();
    if (!corners) ctx.arc(x, y, r, 0, 2 * Math.PI);
    else { corners.forEach(([dx, dy], n) => ctx[n ? "lineTo" : "moveTo"](x + dx * r, y + dy * r)); ctx.closePath(); }
  }
  // A doubted figure is a cross instead of the line's own shape; an operating point has a ring around it.
  function mark(ctx, style, x, y, unit, {isDoubted, isPoint}) {
    ctx.setLineDash([]);
    ctx.strokeStyle = ctx.fillStyle = style.colour;
    if (isDoubted) {
      const r = 4.5 * unit;
      ctx.lineWidth = 2.2 * unit;
      ctx.beginPath();
      ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r);
      ctx.stroke();
    } else { shape(ctx, style.shape, x, y, 3.6 * unit); ctx.fill(); }
    if (isPoint) { ctx.lineWidth = 2 * unit; ctx.beginPath(); ctx.arc(x, y, 8 * unit, 0, 2 * Math.PI); ctx.stroke(); }
  }
  function swatch(canvas) {
    const unit = devicePixelRatio || 1, ctx = canvas.getContext("2d"), kind = canvas.dataset.mark || "";
    canvas.width = 34 * unit; canvas.height = 14 * unit;
    const style = kind ? {colour: colour("--ink"), dash: [], shape: 0} : styleOf(Number(canvas.dataset.style));
    if (!kind) {
      ctx.strokeStyle = style.colour; ctx.lineWidth = 2 * unit; ctx.setLineDash(style.dash.map(d => d * unit));
      ctx.beginPath(); ctx.moveTo(0, 7 * unit); ctx.lineTo(34 * unit, 7 * unit); ctx.stroke();
    }
    mark(ctx, style, 17 * unit, 7 * unit, unit * (kind === "point" ? .8 : 1), {isDoubted: kind === "doubted", isPoint: kind === "point"});
  }

  const short = value => {
    const size = Math.abs(value);
    for (const [unit, least, by] of [["G", 1e9, 1e9], ["M", 1e6, 1e6], ["k", 1e4, 1e3]])
      if (size >= least) return `${+(value / by).toPrecision(3)}${unit}`;
    return String(+value.toPrecision(4)).replace(/^(\d)(\d{3})$/, "$1,$2");
  };
  const clock = at => new Date(at * 1000).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
  // Labels that would touch the one before are left out.
  const apart = (u, splits, text) => {
    let last = -Infinity;
    return splits.map(value => {
      const label = text(value), at = u.valToPos(value, "x"), width = 7 * label.length + 10;
      if (at - last < width) return "";
      last = at;
      return label;
    });
  };

  function options(chart, width, height, tip) {
    const ink = colour("--ink"), soft = colour("--soft"), grid = {stroke: colour("--line"), width: 1, dash: [2, 3]};
    const axis = {stroke: soft, grid, ticks: {...grid, dash: [], size: 4}, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18, labelGap: 2};
    const x = chart.x, y = chart.y, isLog = axis => axis.scale === "log";
    const least = Math.min(...chart.lines.flatMap(line => line.values.filter(v => v > 0))), most = Math.max(...chart.lines.flatMap(line => line.values.filter(v => v !== null)));
    const yRange = y.range || (isLog(y) ? [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most) - 1e-9)]
      : (u, low, high) => [0, high > 0 ? high * 1.08 : 1]);
    const pad = values => isLog(x) ? [values[0] / 1.25, values[values.length - 1] * 1.25]
      : [values[0] - .03 * ((values[values.length - 1] - values[0]) || 1), values[values.length - 1] + .05 * ((values[values.length - 1] - values[0]) || 1)];
    return {
      width, height, legend: {show: false}, padding: [10, x.scale === "time" ? 32 : 18, 0, 0],  // a label is centered below the last mark
      cursor: {points: {show: false}, y: false, drag: {setScale: x.scale === "time", x: x.scale === "time"}},
      scales: {x: {time: false, distr: isLog(x) ? 3 : 1, log: 2, range: x.range ? () => x.range : () => pad(chart.x_values)},
        y: {distr: isLog(y) ? 3 : 1, log: 10, range: typeof yRange === "function" ? yRange : () => yRange}},
      axes: [{...axis, label: x.label, labelSize: x.label ? 18 : 0, size: 26,
        splits: isLog(x) ? () => chart.x_values : undefined, filter: (u, splits) => splits, space: 56,
        incrs: x.scale === "time" ? [300, 600, 900, 1800, 3600, 7200, 10800, 21600] : undefined,
        values: (u, splits) => apart(u, splits, x.scale === "time" ? clock : short)},
      {...axis, label: y.label, size: 48, space: 34,
        values: (u, splits) => splits.map(v => v === null ? "" : y.unit === "%" ? `${Math.round(v)} %` : isLog(y) && Math.abs(Math.log10(v) % 1) > 1e-6 ? "" : short(v))}],
      series: [{}, ...chart.lines.map(line => ({label: line.label, scale: "y", paths: () => null, points: {show: false}}))],
      hooks: {draw: [u => draw(u, chart, ink)], setCursor: [u => tip(u)]},
    };
  }

  function places(u, chart, line) {
    const order = line.order && line.order.length ? line.order : chart.x_values.map((_, n) => n);
    const known = order.filter(n => line.values[n] !== null && line.values[n] !== undefined);
    const steps = known.slice(1).map((n, at) => n - known[at]).sort((one, other) => one - other);
    const most = 2.5 * (steps[Math.floor(steps.length / 2)] || 1);  // of a line with gaps: a longer step than usual is one
    return known.flatMap((n, at) => {
      const place = {n, x: u.valToPos(chart.x_values[n], "x", true), y: u.valToPos(line.values[n], "y", true)};
      return line.has_gaps && at && n - known[at - 1] > most ? [null, place] : [place];
    });
  }
  function draw(u, chart, ink) {
    const ctx = u.ctx, unit = devicePixelRatio || 1, box = u.bbox, taken = [];
    ctx.save();
    ctx.beginPath(); ctx.rect(box.left - 9 * unit, box.top - 9 * unit, box.width + 18 * unit, box.height + 18 * unit); ctx.clip();
    const rows = chart.lines.map(line => [line, styleOf(line.style), places(u, chart, line)]);
    for (const [line, style, at] of rows) {
      ctx.strokeStyle = style.colour; ctx.lineWidth = 2 * unit; ctx.lineJoin = "round";
      ctx.setLineDash(style.dash.map(d => d * unit));
      ctx.beginPath();
      let isOpen = false;
      for (const place of at) {
        if (!place) { isOpen = false; continue; }
        ctx[isOpen ? "lineTo" : "moveTo"](place.x, place.y);
        isOpen = true;
      }
      ctx.stroke();
    }
    for (const [line, style, at] of rows) at.forEach((place, n) => {
      const isAlone = !at[n - 1] && !at[n + 1];
      if (place && (line.has_marks || isAlone)) mark(ctx, style, place.x, place.y, unit, {isDoubted: line.doubts && line.doubts[place.n], isPoint: line.points && line.points[place.n]});
    });
    ctx.fillStyle = ink; ctx.textAlign = "center"; ctx.textBaseline = "bottom"; ctx.font = `${11 * unit}px system-ui, sans-serif`;
    for (const [line, , at] of rows) if (line.labels) for (const place of [...at].reverse()) {
      if (!place || !line.labels[place.n]) continue;
      const text = line.labels[place.n], half = ctx.measureText(text).width / 2 + 3 * unit;
      const spot = [place.x - half, place.y - 24 * unit, place.x + half, place.y - 9 * unit];
      const hits = other => spot[0] < other[2] && other[0] < spot[2] && spot[1] < other[3] && other[1] < spot[3];
      const marks = at.filter(other => other && other !== place).map(other => [other.x - 5 * unit, other.y - 5 * unit, other.x + 5 * unit, other.y + 5 * unit]);
      if (taken.some(hits) || marks.some(hits) || spot[1] < 0) continue;
      taken.push(spot);
      ctx.fillText(text, place.x, place.y - 10 * unit);
    }
    ctx.restore();
  }

  // The figures under the pointer, or under the arrow keys: the nearest mark, or all lines at that time.
  function tooltip(chart, box) {
    return u => {
      const {left, top, idx} = u.cursor;
      if (left === undefined || left < 0 || idx === null || idx === undefined) { box.hidden = true; return; }
      let text = "";
      if (chart.x.scale === "time") {
        const rows = chart.lines.filter(line => line.values[idx] !== null && line.values[idx] !== undefined);
        if (rows.length) text = [clock(chart.x_values[idx]), ...rows.map(line => `${line.label}: ${line.bound ? "≤ " : ""}${short(line.values[idx])}${chart.y.unit ? ` ${chart.y.unit}` : ""}`)].join("\n");
      } else {
        let best = Infinity;
        for (const line of chart.lines) line.values.forEach((value, n) => {
          if (value === null) return;
          const away = Math.hypot(u.valToPos(chart.x_values[n], "x") - left, (u.valToPos(value, "y") - (top < 0 ? 0 : top)) * (u.byKeys ? 0 : 1));
          if (away < best && away < 40) { best = away; text = line.titles[n]; }
        });
      }
      box.textContent = text;
      box.hidden = !text;
      box.style.left = `${Math.min(Math.max(0, u.bbox.left / devicePixelRatio + left + 12), Math.max(0, u.width - box.offsetWidth - 4))}px`;
      box.style.top = `${Math.max(0, (top < 0 || u.byKeys ? 0 : top) - box.offsetHeight - 4)}px`;
    };
  }

  function show(host, chart) {
    const canvas = document.createElement("div"), box = document.createElement("div");
    canvas.className = "canvas"; box.className = "tip"; box.hidden = true; box.setAttribute("role", "status");
    host.replaceChildren(canvas, box);
    host.tabIndex = 0;
    host.setAttribute("role", "group");
    host.setAttribute("aria-label", `${chart.title}: chart. The arrow keys read its figures.`);
    const height = () => Number(host.dataset.height) || (host.clientWidth < 420 ? 230 : 260);
    const data = chart => [chart.x_values, ...chart.lines.map(line => line.values)];
    let plot = null, at = -1, current = chart;
    const make = () => {
      if (plot) plot.destroy();
      plot = new uPlot(options(current, Math.max(200, canvas.clientWidth), height(), tooltip(current, box)), data(current), canvas);
    };
    make();
    host.addEventListener("keydown", event => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step || !current.x_values.length) return;
      event.preventDefault();
      at = Math.max(0, Math.min(current.x_values.length - 1, at + step));
      plot.byKeys = true;
      plot.setCursor({left: plot.valToPos(current.x_values[at], "x"), top: 10});
      plot.byKeys = false;
    });
    host.addEventListener("focusout", () => { box.hidden = true; });
    new ResizeObserver(() => { if (plot && canvas.clientWidth && Math.abs(canvas.clientWidth - plot.width) > 1) plot.setSize({width: Math.max(200, canvas.clientWidth), height: height()}); }).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", make);
    return {update: next => { if (host.matches(":hover, :focus") && !box.hidden) return; current = next; make(); }};
  }
  return {show, swatch};
})();
