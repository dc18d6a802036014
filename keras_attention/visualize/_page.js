// A map holds a row for each query (the word that looks) and a column for each key
// (the word that is looked at). Text of the data enters the page as text nodes only.

const LISTED = 10; // rows of the table, before it is asked for all
const NAMED = 3; // words that the sentence names
const LONG = 120; // words, from which on a text is set small
const LABELLED = 32; // words a side, up to which the map has labels
const LONGEST_NAME = 40; // characters of a word in a sentence
const FAILED = "The weights cannot be unpacked: this needs a browser of 2023 or later.";

const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const data = JSON.parse(byId("data").textContent);
const paired = data.columns !== null;
const sides = { rows: data.rows, columns: data.columns ?? data.rows };
const height = sides.rows.tokens.length;
const width = sides.columns.tokens.length;
const decimals = String(data.step).split(".")[1].length;

// `pinned` and `pointed` are words, {side, index}, or null; `floor` is 0 to 100.
const state = {
  layer: 0,
  head: 0,
  direction: "out",
  scale: height === 1 || width === 1 ? "map" : "word",
  floor: 0,
  pinned: height === 1 ? { side: "rows", index: 0 } : null,
  pointed: null,
  all: false,
};
let map = null; // {codes, largest} of the layer and head of `state`
const tokens = {}; // side -> elements
const thumbnails = []; // map number -> {button, canvas}

// Maps

function bytesOf(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

async function unpack(number) {
  const packed = new Blob([bytesOf(byId(`map-${number}`).textContent)]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = height * width;
  const codes = Uint16Array.from(bytes.subarray(0, size));
  for (let at = size; at < bytes.length; at++) codes[at - size] += 256 * bytes[at];
  let largest = 0;
  for (const code of codes) largest = Math.max(largest, code);
  return { codes, largest: largest * data.step };
}

function mapNumber(layer, head) {
  const before = data.layers.slice(0, layer);
  return before.reduce((sum, each) => sum + each.spreads.length, head);
}

function mapName(layer, head) {
  const { name, spreads } = data.layers[layer];
  const parts = [name, spreads.length > 1 ? `head ${head}` : ""];
  return parts.filter(Boolean).join(", ");
}

async function choose(layer, head) {
  state.layer = layer;
  state.head = Math.min(head, data.layers[layer].spreads.length - 1);
  showChoice();
  const number = mapNumber(state.layer, state.head);
  const unpacked = await unpack(number).catch(() => null);
  if (number !== mapNumber(state.layer, state.head)) return; // another one since
  map = unpacked;
  if (map) drawMap();
  else byId("status").textContent = FAILED;
  render();
}

// Weights

function weight(row, column) {
  return map.codes[row * width + column] * data.step;
}

function leastShown() {
  return map.largest * (state.floor / 100) ** 2;
}

/** The word whose weights are shown, or null: the mean over all that look. */
function chosen() {
  const word = state.pointed ?? state.pinned;
  if (!word || paired) return word;
  return { side: state.direction === "out" ? "rows" : "columns", index: word.index };
}

/** The weights of a word, and the side whose words they belong to. */
function weightsOf(word) {
  if (word?.side === "columns") {
    const values = sides.rows.tokens.map((_, row) => weight(row, word.index));
    return { side: "rows", values };
  }
  if (word) {
    const values = sides.columns.tokens.map((_, column) => weight(word.index, column));
    return { side: "columns", values };
  }
  const values = new Array(width).fill(0);
  map.codes.forEach((code, at) => (values[at % width] += code));
  return { side: "columns", values: values.map((sum) => (sum * data.step) / height) };
}

function ranked(values) {
  const least = leastShown();
  return values
    .map((value, index) => ({ value, index }))
    .filter(({ value }) => value > 0 && value >= least)
    .sort((one, other) => other.value - one.value || one.index - other.index);
}

function strongest(word, values) {
  if (word && state.scale === "map") return map.largest;
  if (word && state.scale === "one") return 1;
  return Math.max(...values);
}

const shown = (value) => (value ? value.toFixed(decimals) : "0");

// Words in sentences

function element(tag, options = {}, ...children) {
  const made = Object.assign(document.createElement(tag), options);
  made.append(...children);
  return made;
}

function shortened(token) {
  const characters = [...token];
  if (characters.length <= LONGEST_NAME) return token;
  const half = LONGEST_NAME / 2;
  return [...characters.slice(0, half), "…", ...characters.slice(-half)].join("");
}

/** The word in quotes, with its place where the same word stands elsewhere too. */
function quoted(side, index) {
  const all = sides[side].tokens;
  const again = all.indexOf(all[index]) !== all.lastIndexOf(all[index]);
  const name = element("bdi", { lang: "" }, shortened(all[index]));
  return ["“", name, again ? `” (word ${index + 1})` : "”"];
}

/** Says in words what the chosen word looks at, or what looks at it. */
function sentence(word, side, order) {
  const joint = word?.side === "columns" ? "by" : "at";
  const verb = word?.side === "columns" ? "is looked at" : "looks";
  const subject = word
    ? [...quoted(word.side, word.index), ` ${verb} `]
    : ["No word is chosen; on average the words look "];
  const objects = order
    .slice(0, NAMED)
    .flatMap(({ value, index }, place) => [
      place ? ", " : `most ${joint} `,
      ...quoted(side, index),
      ` ${shown(value)}`,
    ]);
  const more = order.length - NAMED;
  const rest = more > 0 ? `, and ${joint} ${more} more` : "";
  const nothing = order.length ? "" : `${joint} nothing`;
  const least = leastShown();
  const bound = least ? ` with a weight of ${shown(least)} or more` : "";
  return [...subject, ...objects, rest, nothing, bound, "."];
}

// Drawing

/** 256 pixels from the paper's colour to the strongest, of the theme there is now. */
function palette() {
  const style = getComputedStyle(root);
  const stops = Array.from({ length: data.levels + 1 }, (_, level) => {
    const color = style.getPropertyValue(`--w${level}`).trim();
    return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  });
  const bytes = new Uint8ClampedArray(4 * 256);
  for (let share = 0; share < 256; share++) {
    const place = (share / 255) * data.levels;
    const below = Math.min(Math.floor(place), data.levels - 1);
    const [low, high] = stops.slice(below, below + 2);
    const color = low.map((value, at) => value + (high[at] - value) * (place - below));
    bytes.set([...color, 255], 4 * share);
  }
  return new Uint32Array(bytes.buffer);
}

/** Draws a cell a pixel; `share(at)` is 0 to 255. */
function paint(canvas, rows, columns, share, colors) {
  Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < pixels.length; at++) pixels[at] = colors[share(at)];
  context.putImageData(image, 0, 0);
}

function drawMap() {
  const { codes, largest } = map;
  const least = leastShown() / data.step;
  const scale = largest ? (255 * data.step) / largest : 0;
  const share = (at) => (codes[at] < least ? 0 : Math.round(codes[at] * scale));
  paint(byId("map"), height, width, share, palette());
}

function drawThumbnails() {
  const { rows, columns, cells } = data.thumbnails;
  const shares = bytesOf(cells);
  const colors = palette();
  thumbnails.forEach(({ canvas }, number) => {
    const share = (at) => shares[number * rows * columns + at];
    paint(canvas, rows, columns, share, colors);
  });
}

function showWords(word, side, values) {
  const full = strongest(word, values);
  const least = leastShown();
  for (const each of paired ? ["rows", "columns"] : ["rows"]) {
    const shaded = !paired || each === side;
    tokens[each].forEach((token, index) => {
      const value = shaded && values[index] >= least ? values[index] : 0;
      const level = full ? Math.round((data.levels * value) / full) : 0;
      const isChosen = index === word?.index && (!paired || each === word.side);
      token.className = `token w${level}${isChosen ? " chosen" : ""}`;
      token.setAttribute("aria-selected", isChosen);
    });
  }
  const kinds = { map: ", largest of the map", word: ", largest of the word", one: "" };
  byId("largest").textContent =
    shown(full) + (word ? kinds[state.scale] : " on average");
}

/** Says in words whose weights the table lists. */
function caption(word) {
  if (!word) return ["What is looked at on average"];
  const name = quoted(word.side, word.index);
  return word.side === "rows"
    ? ["Where ", ...name, " looks"]
    : ["What looks at ", ...name];
}

function showList(word, side, order) {
  byId("list-caption").replaceChildren(...caption(word));
  const listed = state.all ? order : order.slice(0, LISTED);
  byId("list").replaceChildren(
    ...listed.map(({ value, index }) => {
      const name = element("bdi", { lang: "" }, sides[side].tokens[index]);
      const bar = element("span", { className: "bar", ariaHidden: "true" });
      bar.style.setProperty("--share", value / order[0].value);
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, name),
        element("td", {}, String(index + 1)),
        element("td", {}, shown(value), bar),
      );
    }),
  );
  const more = byId("more");
  more.hidden = order.length <= LISTED;
  more.ariaExpanded = String(state.all);
  more.textContent = state.all ? `The first ${LISTED}` : `All ${order.length}`;
}

/** Frames the row or column of the map that is the chosen word's. */
function showBand(id, side, start, size, word, count) {
  const band = byId(id);
  band.hidden = word?.side !== side;
  if (band.hidden) return;
  band.style.setProperty(start, `${(100 * word.index) / count}%`);
  band.style.setProperty(size, `${100 / count}%`);
}

function showFloor() {
  const least = leastShown();
  byId("floor-text").textContent = shown(least);
  byId("floor").ariaValueText = least
    ? `weights under ${shown(least)} are hidden`
    : "no weight is hidden";
}

/** Shows the weights of the chosen word: shades, sentence, table, place in the map. */
function render() {
  if (!map) return;
  const word = chosen();
  const { side, values } = weightsOf(word);
  const order = ranked(values);
  showWords(word, side, values);
  byId("status").replaceChildren(...sentence(word, side, order));
  showList(word, side, order);
  showBand("row-band", "rows", "top", "height", word, height);
  showBand("column-band", "columns", "left", "width", word, width);
  showFloor();
}

/** Shows which layer and head are chosen, in all controls. */
function showChoice() {
  const { layer, head } = state;
  const heads = data.layers[layer].spreads.map((_, each) => new Option(each, each));
  byId("head").replaceChildren(...heads);
  byId("head").value = head;
  byId("layer").value = layer;
  const name = mapName(layer, head);
  const heading = element("bdi", {}, name);
  byId("words-title").replaceChildren("Words", name ? ": " : "", heading);
  byId("map").ariaLabel =
    `Map of ${height} words that look by ${width} that are looked at` +
    `${name && `, ${name}`}. The table lists the weights of the chosen word.`;
  thumbnails.forEach(({ button }, number) => {
    const isChosen = number === mapNumber(layer, head);
    button.ariaPressed = String(isChosen);
    button.tabIndex = isChosen ? 0 : -1;
  });
}

// Making the page

function makeToken(side, index) {
  return element(
    "span",
    { className: "token w0", role: "option", dir: "auto", tabIndex: index ? -1 : 0 },
    sides[side].tokens[index],
  );
}

/** Fills a list with its words; words that run against the line are kept together. */
function makeTokens(side) {
  const list = byId(side);
  const { direction, runs } = sides[side];
  tokens[side] = sides[side].tokens.map((_, index) => makeToken(side, index));
  list.dir = direction;
  let at = 0;
  for (const [start, end] of runs) {
    const against = direction === "rtl" ? "ltr" : "rtl";
    const run = element("bdi", { dir: against, role: "presentation" });
    run.append(...tokens[side].slice(start, end));
    list.append(...tokens[side].slice(at, start), run);
    at = end;
  }
  list.append(...tokens[side].slice(at));
  list.classList.toggle("long", Math.max(height, width) > LONG);
  listenToWords(list, side);
}

function makeGrid() {
  const most = Math.max(...data.layers.map(({ spreads }) => spreads.length));
  const heads = Array.from({ length: most }, (_, head) =>
    element("th", { scope: "col", ariaLabel: `head ${head}` }, String(head)),
  );
  const grid = byId("grid");
  grid.style.setProperty("--heads", most);
  grid.append(element("tr", {}, element("td"), ...heads));
  data.layers.forEach(({ name, spreads }, layer) => {
    const title = element("th", { scope: "row" }, breakable(name || "all"));
    const cells = spreads.map((_, head) =>
      element("td", {}, makeThumbnail(layer, head)),
    );
    grid.append(element("tr", {}, title, ...cells));
  });
  byId("maps").hidden = thumbnails.length === 1;
}

/** A layer's name that may break after "/" and "_". */
function breakable(name) {
  const parts = name.split(/(?<=[/_])/).flatMap((part) => [part, element("wbr")]);
  return element("bdi", {}, ...parts.slice(0, -1));
}

function makeThumbnail(layer, head) {
  const canvas = element("canvas", { ariaHidden: "true" });
  const button = element("button", { type: "button", tabIndex: -1 }, canvas);
  const count = data.layers[layer].spreads[head];
  const words = `a word looks at about ${count} words`;
  button.ariaLabel = `${mapName(layer, head)}: ${words}`;
  button.title = button.ariaLabel;
  button.addEventListener("click", () => choose(layer, head));
  thumbnails.push({ button, canvas });
  return button;
}

function makeControls() {
  const names = data.layers.map(({ name }, layer) => new Option(name, layer));
  byId("layer").append(...names);
  byId("layer-field").hidden = names.length === 1;
  byId("head-field").hidden = data.layers.every(({ spreads }) => spreads.length === 1);
  byId("scale").value = state.scale;
  byId("direction-field").hidden = paired;
  byId("columns-side").hidden = !paired;
  byId("texts").classList.toggle("beside", paired && Math.max(height, width) > LONG);
  if (paired) byId("rows-title").textContent = "Words that look";
}

function makeLabels() {
  byId("plot").style.setProperty("--rows", height);
  byId("plot").style.setProperty("--columns", width);
  if (Math.max(height, width) > LABELLED) return;
  byId("plot").classList.add("labelled");
  const labels = (side) =>
    sides[side].tokens.map((token) => element("span", { dir: "auto" }, token));
  byId("row-labels").append(...labels("rows"));
  byId("column-labels").append(...labels("columns"));
}

// Listening

function listenToWords(list, side) {
  const words = tokens[side];
  let again = false; // whether the word under the pointer was chosen before the click
  const wordAt = ({ target }) => {
    const index = words.indexOf(target);
    return index < 0 ? null : { side, index };
  };
  list.addEventListener("pointerover", (event) => {
    const word = wordAt(event); // null in the gaps between words
    if (word) point(word);
  });
  list.addEventListener("pointerleave", () => point(null));
  list.addEventListener("pointerdown", (event) => {
    again = isPinned(wordAt(event));
  });
  list.addEventListener("click", (event) => {
    const word = wordAt(event);
    if (word) pin(again ? null : word);
  });
  list.addEventListener("focusin", (event) => {
    for (const word of words) word.tabIndex = word === event.target ? 0 : -1;
    pin(wordAt(event));
  });
  list.addEventListener("keydown", (event) => {
    const next = nextWord(words, words.indexOf(event.target), event.key, list.dir);
    if (next === null) return;
    event.preventDefault();
    state.pointed = null;
    words[next].focus();
    pin({ side, index: next });
  });
}

/** Where a key leads from a word: a place in the list, or null for other keys. */
function nextWord(words, index, key, direction) {
  const forward = direction === "rtl" ? -1 : 1;
  const last = words.length - 1;
  const within = (place) => Math.min(Math.max(place, 0), last);
  const steps = {
    ArrowRight: () => within(index + forward),
    ArrowLeft: () => within(index - forward),
    ArrowDown: () => lineStep(words, index, 1),
    ArrowUp: () => lineStep(words, index, -1),
    Home: () => 0,
    End: () => last,
    Enter: () => index,
    " ": () => index,
  };
  return steps[key]?.() ?? null;
}

/** The nearest word in the line below (`step` 1) or above (-1), or the same word. */
function lineStep(words, index, step) {
  const from = words[index].getBoundingClientRect();
  let best = index;
  let least = Infinity;
  words.forEach((word, place) => {
    const box = word.getBoundingClientRect();
    const lines = Math.round((step * (box.top - from.top)) / from.height);
    const aside = Math.abs(box.left + box.width / 2 - from.left - from.width / 2);
    const distance = 1e6 * lines + aside;
    if (lines > 0 && distance < least) [best, least] = [place, distance];
  });
  return best;
}

function isPinned(word) {
  const { pinned } = state;
  return word !== null && word.index === pinned?.index && word.side === pinned.side;
}

function pin(word) {
  state.pinned = word;
  render();
}

function point(word) {
  state.pointed = word;
  render();
}

function listenToMap() {
  const canvas = byId("map");
  const cellAt = ({ clientX, clientY }) => {
    const box = canvas.getBoundingClientRect();
    const place = (share, count) =>
      Math.min(Math.max(Math.floor(share * count), 0), count - 1);
    return {
      row: place((clientY - box.top) / box.height, height),
      column: place((clientX - box.left) / box.width, width),
    };
  };
  const wordAt = ({ row, column }) => ({
    side: "rows",
    index: paired || state.direction === "out" ? row : column,
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!map) return;
    const cell = cellAt(event);
    showCell(cell);
    point(wordAt(cell));
  });
  canvas.addEventListener("pointerleave", () => {
    showCell(null);
    point(null);
  });
  canvas.addEventListener("click", (event) => pin(wordAt(cellAt(event))));
  showCell(null);
}

function showCell(cell) {
  const parts = cell
    ? [
        ...quoted("rows", cell.row),
        " looks at ",
        ...quoted("columns", cell.column),
        `: ${shown(weight(cell.row, cell.column))}`,
      ]
    : ["A row for each word that looks, a column for each that is looked at."];
  byId("cell").replaceChildren(...parts);
}

function listenToGrid() {
  byId("grid").addEventListener("keydown", (event) => {
    const head = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    const layer = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    const row = data.layers[state.layer + layer];
    if (!(head || layer) || !row) return;
    event.preventDefault();
    const next = Math.min(state.head + head, row.spreads.length - 1);
    choose(state.layer + layer, Math.max(next, 0));
    thumbnails[mapNumber(state.layer, state.head)].button.focus();
  });
}

function listenToControls() {
  const on = (id, kind, handle) => byId(id).addEventListener(kind, handle);
  on("layer", "change", () => choose(Number(byId("layer").value), state.head));
  on("head", "change", () => choose(state.layer, Number(byId("head").value)));
  on("direction-field", "change", ({ target }) => {
    state.direction = target.value;
    render();
  });
  on("scale", "change", ({ target }) => {
    state.scale = target.value;
    render();
  });
  on("floor", "input", ({ target }) => {
    state.floor = Number(target.value);
    if (map) drawMap();
    render();
  });
  on("more", "click", () => {
    state.all = !state.all;
    render();
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    state.pointed = null;
    pin(null);
  });
}

function listenToTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = byId("theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const redraw = () => {
    button.textContent = isDark() ? "Light theme" : "Dark theme";
    drawThumbnails();
    if (map) drawMap();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    redraw();
  });
  system.addEventListener("change", redraw);
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    redraw();
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    setTimeout(redraw); // the style sheet is that of paper until then
  });
  redraw();
}

makeTokens("rows");
if (paired) makeTokens("columns");
else tokens.columns = tokens.rows;
makeControls();
makeGrid();
makeLabels();
listenToControls();
listenToMap();
listenToGrid();
listenToTheme();
choose(0, 0);
