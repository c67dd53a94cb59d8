// An image, its spectrum, the filter's, their product frequency by frequency, and what that is as an image. The step
// chooses the filter; the pointer on a spectrum, or two sliders, choose the frequency whose product is written out.

const view = {
  start(ui, data) {
    const {x, w, y, numbers, tops, floor} = data, T = x.shape[0], HALF = T / 2, HEAD = 20, FILTER = 74;
    let u = 1, v = 1;

    const row = ui.element('div', {class: 'row', style: 'gap:14px 10px'}, ui.body);
    const side = width => Math.floor(Math.max(110, Math.min(width, width < 640 ? 200 : (width - 40) / 5)));
    const grey = level => `rgb(${level},${level},${level})`;
    const from = i => (i + HALF) % T;   // frequency 0 is in the middle
    const signed = k => k > HALF ? k - T : k;
    function value(name, a, b) {   // columns beyond T / 2 are not sent: they are conjugates of others
      if (b > HALF) { const [re, im] = value(name, (T - a) % T, T - b); return [re, -im]; }
      const [re, im] = numbers[name], k = ((re.shape[0] > 1 ? ui.step : 0) * T + a) * (HALF + 1) + b;
      return [re[k], im[k]];
    }
    function size(name, a, b) {   // from 0 to 1, on a logarithmic scale
      const top = tops[name][tops[name].length > 1 ? ui.step : 0];
      return 1 + Math.log10(Math.max(Math.hypot(...value(name, a, b)) / top, floor)) / -Math.log10(floor);
    }
    function choose(to_u, to_v) {
      [u, v] = [(to_u + T) % T, (to_v + T) % T];
      ui.go(ui.step);
    }
    function cells(g, s, rows, columns, top, paint) {
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
          g.fillStyle = paint(i, j);
          const [x0, y0] = [Math.round(j * s), Math.round(i * s)], gap = s > 5 ? 1 : 0;   // on whole pixels, else seams show
          g.fillRect(x0, top + y0, Math.round((j + 1) * s) - x0 - gap, Math.round((i + 1) * s) - y0 - gap);
        }
      }
    }
    function head(g, text, colour, y = 13) {
      g.font = '600 13px system-ui, sans-serif';
      if (colour !== 'fg') { ui.name(g, text, 0, y, colour); return; }
      g.fillStyle = ui.colour(colour);
      g.fillText(text, 0, y);
    }
    function picture(label, name, colour, paint, under) {
      const canvas = ui.canvas({
        label, parent: row, maxWidth: side, height: width => HEAD + width + (width < 150 ? 0 : FILTER + HEAD),
        paint(g, width) {
          head(g, name, colour);
          cells(g, width / T, T, T, HEAD, paint);
          under?.(g, width, HEAD + width + 6);
        },
      });
      return canvas;
    }
    function spectrum(label, name, title, colour) {
      const canvas = picture(label, title, colour, (i, j) => {
        return ui.colour(colour, 0.04 + 0.96 * size(name, from(i), from(j)));
      }, (g, width, top) => {
        const s = width / T;
        for (const [a, b] of [[u, v], [(T - u) % T, (T - v) % T]]) {
          g.strokeStyle = ui.colour(a === u && b === v ? 'hot' : 'dim');
          g.lineWidth = 2;
          g.strokeRect(from(b) * s - 3, HEAD + from(a) * s - 3, s + 6, s + 6);
        }
        if (width < 150) return;
        const text = part => (Math.abs(part) < 0.0005 ? '0' : Math.abs(part) < 10 ? part.toFixed(3) : part.toFixed(1));
        const [re, im] = value(name, u, v);
        g.font = '13px ui-monospace, Menlo, monospace';
        g.fillStyle = ui.colour('fg');
        g.fillText({X: 'X =', W: '\u00d7 W =', Y: '= Y ='}[name], 0, top + 16);
        g.fillText(`${text(re)} ${im < 0 ? '\u2212' : '+'} ${text(Math.abs(im))}i`.replace(/^-/, '\u2212'), 0, top + 36);
      });
      canvas.style.cursor = 'crosshair';
      canvas.style.touchAction = 'none';
      canvas.addEventListener('pointermove', event => {
        const s = canvas.clientWidth / T, [i, j] = [event.offsetY - HEAD, event.offsetX].map(place => Math.floor(place / s));
        if (i >= 0 && i < T && j >= 0 && j < T) choose(from(i), from(j));
      });
    }
    picture('x, the picture', 'x', 'fg', (i, j) => grey(2 * x[i * T + j]));
    spectrum('the spectrum of the picture', 'X', '|X|, spectrum of x', 'A');
    spectrum('the spectrum of the filter, conjugated', 'W', '\u00d7 |W|, of the filter', 'B');
    spectrum('the product of both spectra', 'Y', '= |Y|', 'C');
    picture('y, the outputs, with the filter', 'y', 'fg', (i, j) => grey(2 * y[(ui.step * T + i) * T + j]), (g, width, top) => {
      if (width < 150) return;
      const taps = w[ui.step], [R, S] = taps.shape, s = Math.min(6, (FILTER - 4) / R);
      head(g, `w, ${R} x ${S}`, 'B', top + 13);
      cells(g, s, R, S, top + HEAD, (i, j) => ui.colour(taps[i * S + j] < 0 ? 'A' : 'B', 0.1 + 0.9 * Math.abs(taps[i * S + j])));
    });

    const sliders = ui.element('div', {class: 'sliders', style: 'margin-top:4px'}, ui.body);
    const inputs = [['periods down', value => choose(value, v), () => u], ['periods across', value => choose(u, value), () => v]].map(([name, set, get]) => {
      const show = ui.slider(name, {min: 1 - HALF, max: HALF}, set, sliders);
      return () => show(signed(get()));
    });
    const shown = data.stats.labels.map(label => ui.stat(label));
    ui.legend([['A', 'large in x'], ['B', 'large in w'], ['C', 'large in y'], ['hot', 'the chosen frequency', 'outline'], ['dim', 'its mirror', 'outline']]);
    return step => {
      inputs.forEach(show => show());
      shown.forEach((show, i) => show(data.stats.values[step][i]));
    };
  },
};
