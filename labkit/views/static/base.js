// What every view shares. A view's own file defines one object:
//
//   const view = {
//     start(ui, data) {            // build the view once for this data
//       const number = ui.stat('global loads so far');
//       const picture = ui.canvas({label: 'tiling', height: width => 300, maxWidth: 600, parent: ui.body,
//         paint(g, width, height) { ... ui.step ... ui.colour('A') ... }});   // CSS pixels; redrawn on resize and theme
//       ui.legend([['A', 'A'], ['hot', 'this warp, now']]);
//       return step => { number(42); };      // other things that follow the step (may be left out)
//       // or {update(data) {...}}: takes new data in place, where a view must not be built anew
//     },
//   };
//
// ui.ink(g.fillStyle) is the colour of text on what was just filled; ui.name(g, text, x, y, 'A') writes the name of what
// has a colour. A legend's third word: a strength from 0 to 1, or outline, ring, dot, line, dashed, bar, hatch.
// ui.body is a div for anything else; ui.element(tag, {class, text}, parent) makes an element; ui.say(node, sentence)
// writes a marked sentence, ui.parts(sentence) gives its nodes; ui.go(step) moves; ui.replace(data) shows other data.
// maxWidth may be a function of the width there is.
// ui.send(message) reaches Python's View.handle_message and returns whether it could (null where no kernel listens).
// ui.onStop(f) runs f when the view goes. data.say (one sentence, or one per step), data.counter (the value of each
// step, with its unit, where steps are values), data.table and data.start are shown by this file.

function labkitUnpack(value) {
  if (Array.isArray(value)) return value.map(labkitUnpack);
  if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return value;
  if (typeof value.b64 === 'string') {
    const bytes = Uint8Array.from(atob(value.b64), c => c.charCodeAt(0));
    const types = {int8: Int8Array, int16: Int16Array, int32: Int32Array, float32: Float32Array};
    return Object.assign(new types[value.dtype](bytes.buffer), {shape: value.shape});
  }
  const items = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, labkitUnpack(item)]));
  return items.patterns ? labkitLanes(items) : items;
}

function labkitLanes({lowest, which, patterns}) {
  const lanes = patterns.shape[1] ?? 32, index = new Int32Array(which.length * lanes);
  for (let i = 0; i < index.length; i++) {
    const row = Math.floor(i / lanes), offset = patterns[which[row] * lanes + i % lanes];
    index[i] = offset < 0 ? -1 : lowest[row] + offset;
  }
  return Object.assign(index, {shape: [which.length, lanes]});
}

// The byte at which an element (its flat index, C order) of an array begins: of its shape, strides and base in bytes.
function labkitAddress({shape, strides, base}, element) {
  let address = base;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    address += element % shape[axis] * strides[axis];
    element = Math.floor(element / shape[axis]);
  }
  return address;
}

function labkitElement(tag, attributes = {}, parent = null) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'text') element.textContent = value;
    else element.setAttribute(name, value);
  }
  parent?.append(element);
  return element;
}

// The nodes of a sentence in which `code` and **emphasis** are marked.
function labkitParts(sentence) {
  return sentence.split(/(\*\*[^*]*\*\*|`[^`]*`)/).filter(Boolean).map(part => {
    if (part[0] === '`') return labkitElement('code', {text: part.slice(1, -1)});
    if (!part.startsWith('**')) return document.createTextNode(part);
    const strong = labkitElement('b');
    strong.append(...labkitParts(part.slice(2, -2)));
    return strong;
  });
}

// A sentence without its marks, for what is read aloud.
function labkitPlain(sentence) { return sentence.replace(/`|\*\*/g, ''); }

// Red, green, blue and alpha of #rgb, #rrggbb, rgb(), rgba() or transparent.
function labkitChannels(colour) {
  if (colour === 'transparent') return [0, 0, 0, 0];
  if (colour[0] !== '#') return [...colour.match(/[\d.]+/g).map(Number), 1].slice(0, 4);
  const hex = colour.length === 4 ? [...colour.slice(1)].map(c => c + c).join('') : colour.slice(1);
  return [...[0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16)), 1];
}

// Black or white, whichever is read better on these colours, painted one over another: a contrast of 4.58 at least.
function labkitInk(layers) {
  const paint = (under, [r, g, b, alpha]) => [r, g, b].map((c, i) => alpha * c + (1 - alpha) * under[i]);
  const linear = c => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = layers.map(labkitChannels).reduce(paint, [255, 255, 255]).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000000' : '#ffffff';
}

// A power of ten as text: 10⁻⁶, and 1 for the power 0.
function labkitPower(power) {
  return power ? '10' + String(power).replace('-', '\u207B').replace(/\d/g, d => '\u2070\u00B9\u00B2\u00B3\u2074\u2075\u2076\u2077\u2078\u2079'[d]) : '1';
}

// A number with so many digits behind the point; what rounds to zero has no sign, and minus is a minus.
function labkitFixed(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace('-', '') : text.replace('-', '\u2212');
}

function labkitFade(colour, alpha) {
  const [r, g, b] = labkitChannels(colour);
  return `rgba(${r},${g},${b},${alpha})`;
}

// Draws a view into host and returns {show(data), stop()}.
function labkitMount(host, view, send) {
  const root = labkitElement('div', {class: 'labkit-view', role: 'group', tabindex: '0'}, host);
  root.dataset.lmSuppressShortcuts = 'true';   // JupyterLab leaves the keys to the view: its shortcuts, and
  root.addEventListener('keydown', event => {   // the notebook's own: single letters would cut and insert cells
    const typed = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (typed || /^(Arrow|Page|Home|End)/.test(event.key)) event.stopPropagation();
    if (event.key === 'Escape') root.closest('.jp-Cell')?.focus();
  });
  let cleanups = [], place = null, update = null, level = 1;   // of the heading: below those of a page's sections
  for (let node = host; node; node = node.parentElement) if (node.matches('section, .labkit-view')) level++;

  function show(packed) {
    if (update) { update(packed); mark(); return; }
    cleanups.forEach(f => f());
    cleanups = [];
    const data = labkitUnpack(packed);
    const says = Array.isArray(data.say) ? data.say : [data.say];
    const element = labkitElement;
    root.replaceChildren();
    root.setAttribute('aria-label', labkitPlain(data.title));
    const heading = element('h2', level > 1 ? {'aria-level': level} : {}, root);
    heading.append(...labkitParts(data.title));
    const say = element('p', {class: 'say', id: `labkit-say-${Math.random()}`, 'aria-live': 'polite'}, root);
    if (data.outdated) {   // the notebook has another kernel of that name by now
      element('p', {class: 'wait', role: 'status'}, root).append(...labkitParts(`${data.outdated} has changed since this picture was made: run its cell again.`));
    }
    const painters = [];
    let colours = {}, styled = 0;
    const ui = {
      root, element, parts: labkitParts, step: 0, steps: says.length,
      send: send && (message => {
        let sent = true;
        try { send(message); } catch { sent = false; }
        gone.textContent = sent ? '' : 'The kernel is gone: run this cell again.';
        return sent;
      }),
      say: (node, sentence) => node.replaceChildren(...labkitParts(sentence)),
      onStop: f => cleanups.push(f),
      body: element('div', {class: 'body'}, root),
      colour: (name, alpha = 1) => {
        colours[name] ||= getComputedStyle(root).getPropertyValue('--' + name).trim();
        if (!colours[name]) {   // the style is not there yet: painted again when it is
          if (root.isConnected) styled ||= setTimeout(() => { styled = 0; repaint(); }, 100);
          return 'transparent';
        }
        return alpha === 1 ? colours[name] : labkitFade(colours[name], alpha);
      },
      // the colour of text on what is painted there, from the bottom up: ui.ink(g.fillStyle)
      ink: (...layers) => labkitInk([ui.colour('card'), ...layers]),
      // the name of what has a colour: a swatch, and the text in the foreground; g.font is set, and the alignment left or right
      name(g, text, x, y, colour) {
        const size = parseFloat(g.font.match(/([\d.]+)px/)[1]) * 0.72, right = g.textAlign === 'right';
        const left = right ? x - g.measureText(text).width - size - 5 : x;
        g.fillStyle = ui.colour(colour);
        g.fillRect(left, y - size, size, size);
        g.fillStyle = ui.colour('fg');
        g.fillText(text, right ? x : left + size + 5, y);
      },
      stat(label, parent = null) {
        ui.stats ??= element('div', {class: 'stats'}, ui.body);
        const box = element('div', {class: 'stat'}, parent ?? ui.stats);
        const number = element('b', {}, box);
        element('span', {text: label}, box);
        return value => { number.textContent = typeof value === 'number' ? value.toLocaleString('en') : value; };
      },
      legend(items, parent = ui.footer) {
        const legend = element('div', {class: 'legend'}, parent);
        for (const [colour, text, style] of items) {
          const item = element('span', {}, legend);
          const hollow = style === 'outline' || style === 'ring', round = style === 'ring' || style === 'dot';
          const strokes = {
            line: `border-top:2px solid var(--${colour});width:16px;height:0;border-radius:0;vertical-align:4px`,
            dashed: `border-top:2px dashed var(--${colour});width:18px;height:0;border-radius:0;vertical-align:4px`,
            bar: `background:var(--${colour});width:3px;height:13px;border-radius:0;vertical-align:-2px`,
            hatch: `border:1px solid var(--${colour});background:repeating-linear-gradient(135deg,var(--${colour}) 0 1px,transparent 1px 4px)`,
          };
          const look = strokes[style] ?? (hollow ? `border:1.5px solid var(--${colour})` : `background:var(--${colour})`);
          element('i', {style: look + (round ? ';border-radius:50%' : style > 0 ? `;opacity:${style}` : '')}, item);
          item.append(text);
        }
      },
      canvas({label, height, paint, maxWidth = 970, parent = ui.body}) {
        const canvas = element('canvas', {role: 'img', 'aria-label': labkitPlain(label), 'aria-describedby': say.id}, parent);
        let width = 0;
        function redraw() {
          if (!width) return;
          const ratio = window.devicePixelRatio || 1, tall = height(width);
          if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
            canvas.width = Math.round(width * ratio);
            canvas.height = Math.round(tall * ratio);
            canvas.style.width = width + 'px';
            canvas.style.height = tall + 'px';
          }
          const g = canvas.getContext('2d');
          g.setTransform(ratio, 0, 0, ratio, 0, 0);
          g.clearRect(0, 0, width, tall);
          paint(g, width, tall);
        }
        function fit() {
          const all = ui.body.clientWidth;
          const room = Math.floor(typeof maxWidth === 'function' ? maxWidth(all) : Math.min(maxWidth, all));
          if (room > 0 && room !== width) { width = room; redraw(); }
        }
        painters.push(redraw);
        const observer = new ResizeObserver(fit);
        observer.observe(ui.body);
        cleanups.push(() => observer.disconnect());
        fit();
        return canvas;
      },
      // a menu of names; the data of the chosen number are shown in place of these
      menu(text, names, data, dataOf, parent = ui.body) {
        const bar = element('div', {class: 'bar', style: 'margin:0 0 8px'}, parent);
        const choice = element('select', {style: 'margin-left:6px'}, element('label', {text}, bar));
        names.forEach((name, i) => element('option', {value: i, text: name}, choice));
        choice.value = data.chosen;
        choice.onchange = () => {
          const chosen = Number(choice.value);
          show({...dataOf(chosen), title: data.title, chosen, moved: true});
        };
        if (data.moved) queueMicrotask(() => choice.focus());
      },
      // buttons of which one is on, for few words; returns what shows another one (its index)
      choice(name, words, moved, parent, label = name) {
        const set = element('fieldset', {}, parent), group = `labkit-${Math.random()}`;
        element('legend', {class: 'name', text: label, style: 'float:left;padding:0'}, set);
        const inputs = words.map((word, i) => {
          const line = element('label', {}, set);
          const input = element('input', {type: 'radio', name: group, value: i}, line);
          line.append(word);
          input.onchange = () => moved(i);
          return input;
        });
        return i => { inputs[i].checked = true; };
      },
      // a slider of whole numbers; returns what shows another number
      slider(name, limits, moved, parent) {
        const label = element('label', {class: 'slider'}, parent);
        element('span', {class: 'name', text: name}, label);
        const input = element('input', {type: 'range', ...limits, 'aria-label': name}, label);
        const output = element('output', {class: 'num'}, label);
        input.oninput = () => moved(Number(input.value));
        return value => { input.value = output.textContent = value; };
      },
      go,
      replace: show,
    };
    ui.footer = element('div', {class: 'footer'}, root);
    const gone = element('p', {class: 'wait', role: 'status'}, root);
    ui.body.classList.toggle('stale', Boolean(data.outdated));
    const started = view.start(ui, data);
    const follow = typeof started === 'function' ? started : null;
    if (started?.update) {
      update = next => { says[0] = next.say; go(0); started.update(labkitUnpack(next)); };
      cleanups.push(() => { update = null; });
    }
    const controls = ui.steps > 1 ? labkitControls(ui, root, say, go, cleanups, data.counter) : null;
    if (controls) {   // right under the picture: numbers and notes come after them
      root.insertBefore(controls.bar, ui.footer);
      while (ui.body.lastElementChild?.matches('.stats, p.wait')) controls.bar.after(ui.body.lastElementChild);
    }
    const table = data.table && labkitTable(data.table, says, root);

    function go(step) {
      ui.step = Math.max(0, Math.min(ui.steps - 1, step));
      root.dataset.step = ui.step;
      place = ui.steps > 1 ? ui.step / (ui.steps - 1) : place;
      say.replaceChildren(...labkitParts(says[ui.step]));
      for (const paint of painters) paint();
      follow?.(ui.step);
      controls?.update();
      table?.(ui.step);
    }
    cleanups.push(() => clearTimeout(styled));
    function repaint() { colours = {}; for (const paint of painters) paint(); }
    const themes = new MutationObserver(repaint);
    themes.observe(document.body, {attributes: true, attributeFilter: ['data-jp-theme-light', 'data-jp-theme-name']});
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', repaint);
    let ratio = window.devicePixelRatio;
    const zoom = () => { if (ratio !== window.devicePixelRatio) { ratio = window.devicePixelRatio; repaint(); } };
    window.addEventListener('resize', zoom);
    cleanups.push(() => {
      themes.disconnect();
      scheme.removeEventListener('change', repaint);
      window.removeEventListener('resize', zoom);
    });
    go(place === null ? data.start ?? 0 : Math.round(place * (ui.steps - 1)));   // new data: the same place in it
    mark();
  }
  function mark() { root.dataset.revision = Number(root.dataset.revision ?? 0) + 1; }
  return {show, stop: () => { cleanups.forEach(f => f()); root.remove(); }};
}

// Buttons, scrubber and keys; returns its bar and what to call after each step.
function labkitControls(ui, root, say, go, cleanups, values) {
  const bar = labkitElement('div', {class: 'bar'});
  const back = labkitElement('button', {type: 'button', 'aria-label': 'step back', text: '\u276E'}, bar);
  const play = labkitElement('button', {type: 'button', 'aria-label': 'play', text: '\u25B6'}, bar);
  const next = labkitElement('button', {type: 'button', 'aria-label': 'step forward', text: '\u276F'}, bar);
  const range = labkitElement('input', {type: 'range', min: 0, max: ui.steps - 1, 'aria-label': `step of ${root.ariaLabel}`}, bar);
  const count = labkitElement('span', {class: 'num'}, bar);
  labkitElement('kbd', {text: '\u2190 \u2192 space', 'aria-hidden': 'true'}, bar);
  let timer = 0, last = 0;

  function stop() {
    cancelAnimationFrame(timer);
    timer = 0;
    play.textContent = '\u25B6';
    play.setAttribute('aria-label', 'play');
    say.setAttribute('aria-live', 'polite');
  }
  function toggle() {
    if (timer) return stop();
    if (ui.step === ui.steps - 1) go(0);
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const rate = calm ? 1 : Math.max(3, Math.min(30, ui.steps / 20));
    play.textContent = '\u275A\u275A';
    play.setAttribute('aria-label', 'pause');
    say.setAttribute('aria-live', 'off');
    last = performance.now();
    const frame = now => {
      if (now - last >= 1000 / rate) { last = now; go(ui.step + 1); }
      if (ui.step === ui.steps - 1) stop();
      else timer = requestAnimationFrame(frame);
    };
    timer = requestAnimationFrame(frame);
  }
  function move(step) { stop(); go(step); }
  back.onclick = () => move(ui.step - 1);
  next.onclick = () => move(ui.step + 1);
  play.onclick = toggle;
  range.oninput = () => move(Number(range.value));
  const moves = {
    ArrowLeft: () => move(ui.step - 1), ArrowRight: () => move(ui.step + 1),
    PageUp: () => move(ui.step - 10), PageDown: () => move(ui.step + 10),
    Home: () => move(0), End: () => move(ui.steps - 1), ' ': toggle,
  };
  function key(event) {
    const own = event.target === root || event.target === range || event.target.closest('.bar') === bar;
    if (!own || event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    if (event.key === ' ' && event.target.tagName === 'BUTTON') return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  }
  root.addEventListener('keydown', key);
  cleanups.push(() => { stop(); root.removeEventListener('keydown', key); });
  return {
    bar,
    update() {
      range.value = ui.step;
      range.setAttribute('aria-valuetext', values?.[ui.step] ?? `step ${ui.step + 1} of ${ui.steps}`);
      count.textContent = values?.[ui.step] ?? `${ui.step + 1} / ${ui.steps}`;
      back.setAttribute('aria-disabled', ui.step === 0);   // `disabled` would take the focus away
      next.setAttribute('aria-disabled', ui.step === ui.steps - 1);
    },
  };
}

// The table behind the picture, filled when it is opened. If each row belongs to a step, the current step's is marked.
function labkitTable({columns, rows, byStep}, says, root) {
  const details = labkitElement('details', {}, root);
  labkitElement('summary', {text: 'The data as a table'}, details);
  const scroll = labkitElement('div', {class: 'scroll', tabindex: '0', role: 'group', 'aria-label': `data of ${root.ariaLabel}`}, details);
  let made = null, now = 0;
  function mark() {
    made?.querySelector('tr.now')?.classList.remove('now');
    if (made && byStep) made.rows[now + 1]?.classList.add('now');
  }
  details.addEventListener('toggle', () => {
    if (made || !details.open) return;
    made = labkitElement('table', {}, scroll);
    const head = labkitElement('tr', {}, labkitElement('thead', {}, made));
    for (const column of byStep ? [...columns, 'in words'] : columns) labkitElement(column ? 'th' : 'td', column ? {scope: 'col', text: column} : {}, head);
    const body = labkitElement('tbody', {}, made);
    rows.forEach((row, step) => {
      const line = labkitElement('tr', {}, body);
      row.forEach((value, at) => labkitElement(at || !value ? 'td' : 'th', {text: value ?? '', ...(at || !value ? {} : {scope: 'row'})}, line));
      if (byStep) labkitElement('td', {}, line).append(...labkitParts(says[step]));
    });
    mark();
  });
  return step => { now = step; mark(); };
}

// The live widget and the page that needs no kernel know each other by id. JupyterLab shows the page's frame and the
// widget as two outputs of one cell: the living widget hides the frame; the frame hides a widget that is gone.
function labkitOutput(node) { return node.closest('.jp-OutputArea-child') ?? node; }

export default {
  render({model, el}) {
    const id = model.get('view_id');
    const hide = () => document.querySelectorAll(`iframe[data-labkit="${id}"]`).forEach(frame => {
      labkitOutput(frame).style.display = 'none';
    });
    const mounted = labkitMount(el, view, message => model.send(message));
    el.dataset.labkitLive = id;
    hide();
    requestAnimationFrame(() => { labkitOutput(el).style.display = ''; hide(); });
    const change = () => mounted.show(model.get('data'));
    model.on('change:data', change);
    change();
    return () => { model.off('change:data', change); mounted.stop(); };
  },
};

function labkitPage(id) {
  labkitMount(document.body, view, null).show(JSON.parse(document.getElementById('labkit-data').textContent));
  const frame = labkitFrame();
  if (!frame) return;
  const outside = frame.ownerDocument, output = labkitOutput(frame);
  function theme() {
    const light = outside.body.dataset.jpThemeLight;
    if (light !== undefined) document.body.dataset.jpThemeLight = light;
  }
  theme();
  const themes = new MutationObserver(theme);
  themes.observe(outside.body, {attributes: true, attributeFilter: ['data-jp-theme-light']});
  window.addEventListener('pagehide', () => themes.disconnect());   // the outer page would keep this one alive

  const lives = () => outside.querySelector(`[data-labkit-live="${id}"]`) !== null;
  const says = pattern => pattern.test(output.nextElementSibling?.textContent.trim() ?? '');
  const patience_ms = output !== frame && outside.querySelector('.lm-Widget') ? 2500 : 0;
  const began = performance.now();
  frame.style.height = '0px';
  function decide() {
    if (lives()) { output.style.display = 'none'; return; }
    if (performance.now() - began < patience_ms && !says(/^Error displaying widget/)) { setTimeout(decide, 60); return; }
    if (says(/^(Loading widget|Error displaying widget)/)) output.nextElementSibling.style.display = 'none';
    new ResizeObserver(() => { frame.style.height = document.body.offsetHeight + 'px'; }).observe(document.body);
  }
  decide();
}

function labkitFrame() {
  try { return window.frameElement; } catch { return null; }
}
