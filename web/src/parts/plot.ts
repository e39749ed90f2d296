/** uPlot, loaded with the first chart. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { shortCount } from "../format";

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Draws stacked bars and returns what takes them away again. */
export function bars(parent: HTMLElement, data: [number[], number[], number[]], height: number): () => void {
  const axis: uPlot.Axis = {
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  const shape = uPlot.paths.bars!({ size: [0.7, 36], radius: 0.15 });
  const [times, read, all] = data;
  const plot = new uPlot(
    {
      width: parent.clientWidth,
      height,
      tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: { y: { range: (_, __, most) => [0, Math.max(10, most * 1.1)] } },
      axes: [
        { ...axis, grid: { show: false }, values: (_, stamps) => stamps.map(day), incrs: [1, 2, 7, 14].map((each) => each * 86_400), space: 64 },
        { ...axis, size: 64, values: (_, values) => values.map(shortCount) },
      ],
      series: [
        {},
        { fill: colour("--saved"), stroke: colour("--saved"), width: 0, paths: shape, points: { show: false } },
        { fill: colour("--read"), stroke: colour("--read"), width: 0, paths: shape, points: { show: false } },
      ],
    },
    [times, all, read],
    parent,
  );
  const resized = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height }));
  resized.observe(parent);
  return () => {
    resized.disconnect();
    plot.destroy();
  };
}

function day(stamp: number): string {
  return new Date(stamp * 1000).toLocaleDateString([], { month: "short", day: "numeric", timeZone: "UTC" });
}
