"use strict";
{
  const charts = JSON.parse(document.getElementById("charts").textContent);
  for (const host of document.querySelectorAll("[data-chart]")) Charts.show(host, charts[Number(host.dataset.chart)]);
  const swatches = () => document.querySelectorAll("canvas.swatch").forEach(Charts.swatch);
  swatches();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", swatches);
}
