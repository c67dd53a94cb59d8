// The products, each a grid of pixels and taps with what it holds of every pair; the one that the step takes is framed.
// Beside them the output so far, in which the terms that it must have in the end are framed. Signs are written out.

const view = {
  start(ui, data) {
    const {products, signs, sums, steps} = data, [places, pixels, taps] = products.shape, area = pixels * taps;
    const SIDE = 20, HEAD = 22, row = ui.element('div', {class: 'row'}, ui.body);
    const now = () => ({output: steps[2 * ui.step], place: steps[2 * ui.step + 1]});

    function written(value) {
      if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value < 0 ? '\u2212\u221E' : '+\u221E';
      const size = Math.abs(value), sign = value < 0 ? '\u2212' : '+';
      const below = [1, 2, 3, 4, 6, 8, 12, 24].find(below => Math.abs(size * below - Math.round(size * below)) < 1e-4);
      return sign + (size === 0.5 ? '\u00BD' : below === 1 ? size : below ? `${Math.round(size * below)}/${below}` : size.toPrecision(2));
    }
    function frame(g, colour, column, line, width, height, s) {
      g.strokeStyle = ui.colour(colour);
      g.lineWidth = 2;
      g.strokeRect(SIDE + column * s - 1.5, HEAD + line * s - 1.5, width * s + 1.5, height * s + 1.5);
    }
    function grid(label, s, paint) {
      const width = SIDE + taps * s + 3;
      ui.canvas({
        label, parent: ui.element('div', {style: `flex:0 1 ${width}px`}, row), maxWidth: all => Math.min(all, width),
        height: () => HEAD + pixels * s + SIDE, paint: g => paint(g, s),
      });
    }
    function fill(g, s, title, colour, held) {
      g.textAlign = 'left';
      g.font = '600 13px ui-monospace, Menlo, monospace';
      if (colour === 'C') ui.name(g, title, SIDE, 14, colour);
      else {
        g.fillStyle = ui.colour(colour);
        g.fillText(title, SIDE, 14);
      }
      g.textAlign = 'center';
      for (let i = 0; i < area; i++) {
        const value = held[i], x = SIDE + i % taps * s, y = HEAD + Math.floor(i / taps) * s;
        const whole = Math.abs(value) > 0.99, text = written(value);
        g.fillStyle = ui.colour('cell');
        g.fillRect(x, y, s - 1, s - 1);
        if (value === 0) continue;
        g.fillStyle = ui.colour(!Number.isFinite(value) ? 'hot' : value > 0 ? 'A' : 'B', whole ? 0.75 : 0.35);
        g.fillRect(x, y, s - 1, s - 1);
        g.font = `${Math.min(13, s * 0.4, s * 1.5 / text.length)}px system-ui, sans-serif`;
        g.fillStyle = ui.ink(ui.colour('cell'), g.fillStyle);
        g.fillText(text, x + (s - 1) / 2, y + s * 0.62);
      }
      g.font = '11px system-ui, sans-serif';
      g.fillStyle = ui.colour('dim');
      for (let j = 0; j < taps; j++) g.fillText('g' + j, SIDE + (j + 0.5) * s, HEAD + pixels * s + 13);
      g.textAlign = 'left';
      for (let i = 0; i < pixels; i++) g.fillText('d' + i, 0, HEAD + (i + 0.62) * s);
    }

    const size = Math.max(24, Math.min(34, Math.floor((960 - (places + 1) * (SIDE + 26)) / ((places + 1.4) * taps))));
    for (let place = 0; place < places; place++) {
      grid(`the terms of M[${place}]`, size, (g, s) => {
        const times = signs[now().output * places + place], taken = now().place === place;
        const often = Math.abs(times) === 1 ? '' : Math.abs(times) + ' ';
        const title = taken ? `${times < 0 ? '\u2212' : '+'} ${often}M[${place}]` : `M[${place}]`;
        fill(g, s, title, taken ? 'hot-text' : 'fg', products.slice(place * area, (place + 1) * area));
        if (taken) frame(g, 'hot', 0, 0, taps, pixels, s);
      });
    }
    grid('the terms of the output so far', Math.round(size * 1.4), (g, s) => {
      const {output} = now();
      fill(g, s, `y[${output}] so far`, 'C', sums.slice(ui.step * area, (ui.step + 1) * area));
      for (let tap = 0; tap < taps; tap++) frame(g, 'C', tap, output + tap, 1, 1, s);
    });
    ui.legend([['A', '+, whole', 0.75], ['A', '+, a part', 0.35], ['B', '\u2212, whole', 0.75], ['B', '\u2212, a part', 0.35],
      ['hot', 'the product of this step', 'outline'], ['C', 'what the output must have', 'outline']]);
  },
};
