// The page itself: evidence leads to its stretch of a curve and to its lines.

(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  root.classList.add("js");
  const data = JSON.parse(byId("data").textContent);
  let chart = null;
  if (data.groups.length) {
    byId("chart-root").hidden = false;
    chart = new Chart(data, {
      root: byId("chart-root"), plot: byId("chart-plot"), group: byId("chart-group"),
      log: byId("chart-log"), reset: byId("chart-reset"), legend: byId("chart-legend"),
    });
  }

  function quote(anchor) {
    for (const excerpt of document.querySelectorAll(".excerpt")) excerpt.classList.toggle("is-active", excerpt.id === anchor);
  }

  function open(link, moves) {
    for (const other of document.querySelectorAll(".evidence[aria-current]")) other.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    const { series, from, to, excerpt } = link.dataset;
    if (chart && series !== undefined) chart.pick(+series, +from, +to, link.id);
    else if (chart) chart.reset();
    quote(excerpt || "");
    const back = document.createElement("a");
    back.href = `#${link.id}`;
    back.textContent = link.querySelector(".says").textContent;
    byId("cited").replaceChildren(back);
    byId("cited").hidden = false;
    byId("hint").hidden = true;
    // beside each other nothing has to move; one above the other, what is shown comes into view
    const isBeside = matchMedia("(min-width: 1000px)").matches;
    const target = series === undefined && excerpt ? byId(excerpt) : byId("chart");
    if (moves && (!isBeside || (series === undefined && excerpt))) target.scrollIntoView({ block: "nearest" });
  }

  function follow(hash) {
    const anchor = decodeURIComponent(hash.slice(1));
    const target = anchor && byId(anchor);
    if (!target) return;
    if (target.classList.contains("evidence")) open(target, false);
    if (target.classList.contains("excerpt")) quote(anchor);
    const folded = target.closest("details");
    if (folded) folded.open = true;
    target.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    if (link.classList.contains("evidence") && (link.dataset.series !== undefined || link.dataset.excerpt)) {
      event.preventDefault();
      history.replaceState(null, "", `#${link.id}`);
      open(link, true);
    } else if (link.classList.contains("metric") && chart) {
      chart.showSeries(+link.dataset.series);
    } else if (link.hash === location.hash) {
      follow(link.hash);
    }
  });
  addEventListener("hashchange", () => follow(location.hash));
  addEventListener("beforeprint", () => {
    root.dataset.printing = "";
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  addEventListener("afterprint", () => { delete root.dataset.printing; });
  byId("hint").hidden = !document.querySelector(".evidence");
  follow(location.hash);
  root.dataset.ready = "true";
})();
