// Draws the charts in the colours of the reader's theme, and works the page's two buttons.
(() => {
  "use strict";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 34rem)");

  // A browser may refuse storage to files; the choice then holds until the page is closed.
  const remembered = { get() { try { return localStorage.getItem("tierloom-theme"); } catch { return null; } },
                       set(value) { try { localStorage.setItem("tierloom-theme", value); } catch { /* not remembered */ } } };

  const themeButton = document.getElementById("theme");
  const chartsTheme = JSON.parse(document.getElementById("charts-theme").textContent);
  const tablesButton = document.getElementById("tables");
  const charts = [...document.querySelectorAll(".chart")].map((target) => ({
    target, spec: JSON.parse(target.nextElementSibling.textContent), drawn: null }));

  function setTheme(theme) {
    root.dataset.theme = theme;
    themeButton.textContent = theme === "dark" ? "Light" : "Dark";
    themeButton.setAttribute("aria-pressed", String(theme === "dark"));
    themeButton.setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
  }

  // Specifications name colours as the style sheet does: var(--c1).
  function painted(part, style) {
    if (typeof part === "string") {
      const name = /^var\((--[\w-]+)\)$/.exec(part);
      return name ? style.getPropertyValue(name[1]).trim() : part;
    }
    if (Array.isArray(part)) return part.map((each) => painted(each, style));
    if (part && typeof part === "object") {
      return Object.fromEntries(Object.entries(part).map(([key, value]) =>
        [key, key === "values" ? value : painted(value, style)]));
    }
    return part;
  }

  // The theme is that of a wide screen; a narrow one has room for fewer ticks, and labels of fewer letters.
  function config(style) {
    const look = painted(chartsTheme, style);
    if (!narrow.matches) return look;
    return { ...look, axisX: { ...look.axisX, tickCount: 4 }, legend: { ...look.legend, columns: 2, layout: { top: { direction: "vertical" } } } };
  }

  async function draw(chart) {
    const style = getComputedStyle(root);
    const spec = painted(chart.spec, style);
    const mode = (spec.$schema || "").includes("/vega/") ? "vega" : "vega-lite";
    for (const each of spec.params || []) if (each.name === "narrow") each.value = narrow.matches;
    const renderer = (spec.usermeta || {}).renderer || "svg";
    if (chart.drawn) chart.drawn.finalize();
    chart.drawn = await vegaEmbed(chart.target, spec, {
      mode, renderer, config: config(style), tooltip: { theme: "custom" },
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: chart.target.dataset.name,
    });
    const menu = chart.target.querySelector("details > summary");
    if (menu) menu.setAttribute("aria-label", "Save this chart");
  }

  let turn = 0;
  async function drawAll() {
    const mine = ++turn;
    document.body.dataset.ready = "no";
    for (const chart of charts) {
      if (mine !== turn) return;
      try {
        await draw(chart);
      } catch (problem) {
        chart.target.textContent = "This chart cannot be drawn; its data is below.";
        console.error(problem);
      }
      await new Promise((done) => setTimeout(done, 0));
    }
    document.body.dataset.ready = "yes";
  }

  themeButton.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    remembered.set(theme);
    setTheme(theme);
    drawAll();
  });
  system.addEventListener("change", () => {
    if (remembered.get()) return;
    setTheme(system.matches ? "dark" : "light");
    drawAll();
  });
  narrow.addEventListener("change", drawAll);

  tablesButton.addEventListener("click", () => {
    const open = tablesButton.getAttribute("aria-pressed") !== "true";
    document.querySelectorAll("details.data").forEach((each) => { each.open = open; });
    tablesButton.setAttribute("aria-pressed", String(open));
    tablesButton.textContent = open ? "Hide data" : "Show data";
  });

  // Files are packed; where the browser can unpack them, the reader gets them so.
  async function unpacked(address) {
    const bytes = Uint8Array.from(atob(address.split(",")[1]), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).blob();
  }
  if (window.DecompressionStream) document.querySelectorAll("a.packed").forEach((link) => {
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const plain = document.createElement("a");
      plain.href = URL.createObjectURL(await unpacked(link.href));
      plain.download = link.download.replace(/\.gz$/, "");
      plain.click();
      URL.revokeObjectURL(plain.href);
    });
  });

  setTheme(root.dataset.theme);
  drawAll();
})();
