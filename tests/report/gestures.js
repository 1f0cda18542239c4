// Drives the chart as a hand would, and notes what it shows after each gesture.
const plot = document.getElementById("chart-plot"), set = document.getElementById("chart-root").dataset;
const box = plot.getBoundingClientRect(), seen = [];
const fire = (type, share, more) => plot.dispatchEvent(new PointerEvent(type,
  { clientX: box.left + box.width * share, clientY: box.top + 60, pointerId: 1, bubbles: true, ...more }));
plot.setPointerCapture = () => {};
const note = () => seen.push(`${set.view}|${set.points}|${set.scale}`);
fire("pointerdown", 0.3); fire("pointermove", 0.5); fire("pointerup", 0.6); note();
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" })); note();
plot.dispatchEvent(new MouseEvent("dblclick")); note();
plot.dispatchEvent(new WheelEvent("wheel", { deltaY: -1, clientX: box.left + box.width / 2 })); note();
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "0" })); note();
document.getElementById("chart-log").click(); note();
document.querySelector("#chart-legend button").click(); note();
fire("pointermove", 0.5);
document.body.dataset.tip = plot.querySelector(".tip").textContent;
document.body.dataset.seen = JSON.stringify(seen);
