// Draws every chart from the specification beside it: those near the screen as they come there, the others when nothing else is to be done, and
// all that are left before the page is printed.
"use strict";
(() => {
  const drawn = new Map();

  const parts = JSON.parse(document.getElementById("chart-parts").textContent);

  // A part of a chart, with those within that charts of the page share.
  function whole(value) {
    if (Array.isArray(value)) return value.map(whole);
    if (value === null || typeof value !== "object") return value;
    if ("part" in value) return whole(parts[value.part]);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, whole(one)]));
  }

  // A row for each point of a curve: its words, and its figures from their columns.
  function rows(curve) {
    const fields = Object.entries(curve);
    const length = Math.max(...fields.map(([, value]) => (Array.isArray(value) ? value.length : 1)));
    return Array.from({ length }, (_, at) =>
      Object.fromEntries(
        fields.map(([name, value]) => [name, Array.isArray(value) ? value[at] : value]),
      ),
    );
  }

  // The specification of a chart, its data as rows.
  function specification(made) {
    const chart = whole(made);
    const named = Object.entries(chart.datasets).map(([name, curves]) => [name, curves.flatMap(rows)]);
    return { ...chart, datasets: Object.fromEntries(named) };
  }

  function draw(place) {
    if (drawn.has(place)) return drawn.get(place);
    seen.unobserve(place);
    const figure = place.closest("figure");
    const spec = specification(JSON.parse(figure.querySelector("script").textContent));
    if (place.clientWidth < 520) {
      // A telephone has no room for legends side by side.
      spec.config.legend.columns = 2;
      spec.config.legend.layout = { bottom: { direction: "vertical", anchor: "start" } };
    }
    const done = vegaEmbed(place, spec, { renderer: "svg", actions: false })
      .then((result) => {
        figure.dataset.drawn = "yes";
        figure.chartView = result.view;
        // The list of curves is keyboard's and reader's way to pick one: it belongs above.
        const list = figure.querySelector(".vega-bindings");
        if (list) figure.insertBefore(list, place);
        return result.view;
      })
      .catch((error) => {
        figure.dataset.drawn = "no";
        place.textContent = `The chart could not be drawn (${error.message}); its data is below.`;
        console.error(error);
      })
      .finally(tell);
    drawn.set(place, done);
    return done;
  }

  const places = [...document.querySelectorAll(".chart")];
  const near = new Set();
  let drawing = false;

  // For whoever drives the browser: which charts are drawn, all of them, all that are near, or some.
  function tell() {
    const all = places.every((place) => place.closest("figure").dataset.drawn);
    document.documentElement.dataset.drawn = all ? "all" : near.size ? "some" : "near";
  }

  // One after the other, so that the page scrolls meanwhile.
  async function drawNear() {
    if (drawing) return;
    drawing = true;
    for (let next = nearest(); next; next = nearest()) {
      near.delete(next);
      await draw(next);
      await new Promise((after) => setTimeout(after));
    }
    drawing = false;
    later(drawNext);
  }

  const later = window.requestIdleCallback || ((task) => setTimeout(task, 200));
  function drawNext() {
    const next = places.find((place) => !drawn.has(place));
    if (!next || drawing) return;
    near.add(next);
    drawNear();
  }

  // The first on the screen, else the one that is least far from it.
  function nearest() {
    const away = (place) => {
      const box = place.getBoundingClientRect();
      return Math.max(0, box.top - window.innerHeight, -box.bottom);
    };
    const left = places.filter((place) => near.has(place) && !drawn.has(place));
    return left.sort((one, other) => away(one) - away(other))[0];
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) near.add(entry.target);
        else near.delete(entry.target);
      }
      tell();
      drawNear();
    },
    { rootMargin: "600px" },
  );
  places.forEach((place) => seen.observe(place));
  if (places.length === 0) tell();

  // Specifications have their data within, so that drawing needs no turn of the event loop: Chromium
  // waits for the handler's promises before it lays out the printed page. Firefox does not.
  window.addEventListener("beforeprint", () => places.forEach(draw));

  // A link to a chart or a case within a closed part opens it.
  function openTarget() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const closed = target && target.closest("details:not([open])");
    if (closed) {
      closed.open = true;
      target.scrollIntoView();
    }
  }
  window.addEventListener("hashchange", openTarget);
  window.addEventListener("load", openTarget);
})();
