// An image, its spectrum with frequency 0 in the middle, one wave, and the sum of the strongest waves. The step chooses
// how many; the pointer on the spectrum, or two sliders, choose the wave that is drawn.

const view = {
  start(ui, data) {
    const {x, sums, size, used, re, im, counts, last} = data, T = x.shape[0], HALF = T / 2, LEVELS = 127, HEAD = 20;
    let u = 0, v = 0, shown = -1;

    const row = ui.element('div', {class: 'row'}, ui.body);
    const side = width => Math.floor(Math.max(128, Math.min(width, (width - (width < 640 ? 24 : 66)) / (width < 640 ? 2 : 4))));
    const grey = level => `rgb(${level},${level},${level})`;
    function picture(label, name, paint, after) {   // paint(row, column) gives the colour of a cell
      return ui.canvas({
        label, parent: row, maxWidth: side, height: width => HEAD + width,
        paint(g, width) {
          const s = width / T;
          follow();
          g.font = '600 13px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          g.fillText(typeof name === 'function' ? name() : name, 0, 13);
          for (let i = 0; i < T; i++) {
            for (let j = 0; j < T; j++) {
              g.fillStyle = paint(i, j);
              const [left, top] = [Math.round(j * s), Math.round(i * s)];   // on whole pixels, else seams show
              g.fillRect(left, HEAD + top, Math.round((j + 1) * s) - left, Math.round((i + 1) * s) - top);
            }
          }
          after?.(g, s);
        },
      });
    }
    function follow() {   // a new step chooses the wave that it added last
      if (shown === ui.step) return;
      [u, v] = last[ui.step];
      shown = ui.step;
    }
    const from = i => (i + HALF) % T;   // cell of the picture to frequency and back: frequency 0 is in the middle
    function choose(to_u, to_v) {
      [u, v] = [(to_u + T) % T, (to_v + T) % T];
      shown = ui.step;
      ui.go(ui.step);
    }
    picture('x, the picture', 'x, the picture', (i, j) => grey(2 * x[i * T + j]));
    const spectrum = picture('X, its spectrum, frequency 0 in the middle', '= waves: |X|', (i, j) => {
      const k = from(i) * T + from(j);
      return used[k] < counts[ui.step] ? ui.colour('A', 0.35 + 0.65 * size[k]) : ui.colour('fg', 0.04 + 0.6 * size[k]);
    }, (g, s) => {
      for (const [a, b, colour] of [[u, v, 'hot'], [(T - u) % T, (T - v) % T, 'dim']]) {
        g.strokeStyle = ui.colour(colour);
        g.lineWidth = 2;
        g.strokeRect(from(b) * s - 3, HEAD + from(a) * s - 3, s + 6, s + 6);
      }
    });
    spectrum.style.cursor = 'crosshair';
    spectrum.style.touchAction = 'none';
    spectrum.addEventListener('pointermove', event => {
      const s = spectrum.clientWidth / T, [i, j] = [event.offsetY - HEAD, event.offsetX].map(at => Math.floor(at / s));
      if (i >= 0 && i < T && j >= 0 && j < T) choose(from(i), from(j));
    });
    const largest = () => Math.hypot(re[u * T + v], im[u * T + v]) || 1;
    picture('the wave that is chosen', 'one of the waves', (i, j) => {
      const turn = 2 * Math.PI * ((u * i + v * j) % T) / T;
      const value = (re[u * T + v] * Math.cos(turn) - im[u * T + v] * Math.sin(turn)) / largest();
      return grey(Math.round(127.5 + 127.5 * value));
    });
    picture('the sum of the strongest waves', () => `sum of ${counts[ui.step].toLocaleString('en')}`, (i, j) => grey(2 * sums[(ui.step * T + i) * T + j]));

    const sliders = ui.element('div', {class: 'sliders', style: 'margin-top:10px'}, ui.body);
    const signed = k => k > HALF ? k - T : k;
    const inputs = [['periods down', value => choose(value, v), () => u], ['periods across', value => choose(u, value), () => v]].map(([name, set, get]) => {
      const show = ui.slider(name, {min: 1 - HALF, max: HALF}, set, sliders);
      return () => show(signed(get()));
    });
    const numbers = [ui.stat('the chosen wave is number, by strength'), ui.stat('its size: brighter and darker by'), ...data.labels.map(label => ui.stat(label))];
    ui.legend([['A', 'waves in the sum'], ['fg', 'waves left out', 0.5], ['hot', 'the chosen wave', 'outline'], ['dim', 'its mirror: the same wave', 'outline']]);
    return step => {
      follow();
      inputs.forEach(show => show());
      const mirror = (T - u) % T === u && (T - v) % T === v ? 1 : 2, k = u * T + v;
      [used[k] + 1, (mirror * Math.hypot(re[k], im[k])).toPrecision(2), ...data.stats[step]].forEach((value, i) => numbers[i](value));
    };
  },
};
