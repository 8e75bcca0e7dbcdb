// Draws every chart from the specification beside it: those in view first, then the others.
"use strict";
(() => {
  const drawn = new Map();

  function draw(place) {
    if (drawn.has(place)) return drawn.get(place);
    const figure = place.closest("figure");
    const spec = JSON.parse(figure.querySelector("script").textContent);
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
      });
    drawn.set(place, done);
    return done;
  }

  const places = [...document.querySelectorAll(".chart")];
  const seen = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "300px" },
  );
  places.forEach((place) => seen.observe(place));

  // What was never scrolled to is drawn too, since it may be printed.
  const later = window.requestIdleCallback || ((task) => setTimeout(task, 200));
  async function drawRest() {
    const next = places.find((place) => !drawn.has(place));
    if (!next) {
      document.documentElement.dataset.drawn = "yes";
      return;
    }
    await draw(next);
    later(drawRest);
  }
  window.addEventListener("load", () => later(drawRest));

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
