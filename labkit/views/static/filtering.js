// An image, the window on it with the filter's taps, and the outputs of that filter. The step chooses the filter; the
// pointer on a picture, or two sliders, choose the output whose window is shown.

const view = {
  start(ui, data) {
    const {x, w, y, signed, largest} = data, [H, W] = x.shape, [, R, S] = w.shape, [, P, Q] = y.shape;
    const text = value => String(Number(value.toFixed(2)) || 0).replace('-', '\u2212');
    let p = Math.floor(P / 3), q = Math.floor(Q / 2);

    const row = ui.element('div', {class: 'row'}, ui.body);
    const SIDE = 176, cell = width => Math.max(2, Math.min(6, Math.floor((width - (width < 640 ? 8 : SIDE + 60)) / (width < 640 ? W : W + Q))));
    const grey = value => { const level = Math.round(255 * Math.max(0, Math.min(1, value))); return `rgb(${level},${level},${level})`; };
    function title(g, name, colour) {
      g.font = '600 13px ui-monospace, Menlo, monospace';
      g.textAlign = 'left';
      ui.name(g, name, 0, 13, colour);
    }
    function move(to_p, to_q) {
      p = Math.max(0, Math.min(P - 1, to_p));
      q = Math.max(0, Math.min(Q - 1, to_q));
      ui.go(ui.step);
    }
    function picture(name, role, columns, rows, paint, before) {   // before: rows and columns above and left of the middle
      const canvas = ui.canvas({
        label: name, parent: row, maxWidth: width => columns * cell(width) + 4, height: width => 20 + rows * ((width - 4) / columns) + 4,
        paint(g, width) {
          const s = (width - 4) / columns;
          title(g, name, role);
          for (let i = 0; i < rows * columns; i++) paint(g, i, 2 + i % columns * s, 20 + Math.floor(i / columns) * s, s);
          const [high, wide] = before ? [R, S] : [1, 1];
          g.strokeStyle = ui.colour('hot');
          g.lineWidth = 2;
          g.strokeRect(2 + q * s - 1, 20 + p * s - 1, wide * s + 2, high * s + 2);
        },
      });
      canvas.style.touchAction = 'none';
      canvas.style.cursor = 'crosshair';
      canvas.addEventListener('pointermove', event => {
        const s = (canvas.clientWidth - 4) / columns;
        move(Math.floor((event.offsetY - 20) / s) - (before ? R >> 1 : 0), Math.floor((event.offsetX - 2) / s) - (before ? S >> 1 : 0));
      });
    }
    picture('x', 'A', W, H, (g, i, left, top, s) => { g.fillStyle = grey(x[i]); g.fillRect(left, top, s + 0.5, s + 0.5); }, true);
    ui.canvas({
      label: 'the pixels of the window, the taps of the filter, and their sum', parent: row, maxWidth: SIDE, height: () => 360,
      paint(g, width) {
        const s = Math.min(46, (width - 4) / S), at = ui.step * R * S;
        let sum = 0;
        for (const [top, name, colour] of [[0, 'window of x', 'A'], [R * s + 34, 'times w', 'B']]) {
          g.save();
          g.translate(0, top);
          title(g, name, colour);
          g.textAlign = 'center';
          g.font = `${Math.min(13, s * 0.34)}px system-ui, sans-serif`;
          for (let i = 0; i < R * S; i++) {
            const pixel = x[(p + Math.floor(i / S)) * W + q + i % S], tap = w[at + i], left = i % S * s + 1, down = 20 + Math.floor(i / S) * s;
            g.fillStyle = top ? ui.colour('cell') : grey(pixel);
            g.fillRect(left, down, s - 1, s - 1);
            if (top && tap) { g.fillStyle = ui.colour(tap > 0 ? 'B' : 'A', 0.25); g.fillRect(left, down, s - 1, s - 1); }
            g.fillStyle = ui.ink(top ? ui.colour('cell') : grey(pixel));
            g.fillText(text(top ? tap : pixel), left + s / 2, down + s / 2 + 4);
            if (top) sum += pixel * tap;
          }
          g.restore();
        }
        g.textAlign = 'left';
        g.font = '600 14px system-ui, sans-serif';
        g.fillStyle = ui.colour('hot-text');
        g.fillText(`sum: ${text(sum)}`, 1, 2 * R * s + 74);
      },
    });
    picture('y', 'C', Q, P, (g, i, left, top, s) => {
      const value = y[ui.step * P * Q + i], share = Math.min(1, Math.abs(value) / largest);
      g.fillStyle = signed[ui.step] ? ui.colour('cell') : grey(value);
      g.fillRect(left, top, s + 0.5, s + 0.5);
      if (signed[ui.step] && share > 0.02) { g.fillStyle = ui.colour(value > 0 ? 'B' : 'A', share); g.fillRect(left, top, s + 0.5, s + 0.5); }
    }, false);

    const sliders = ui.element('div', {class: 'sliders', style: 'margin-top:10px'}, ui.body);
    const inputs = [['row of y', P, value => move(value, q), () => p], ['column of y', Q, value => move(p, value), () => q]].map(([name, count, set, get]) => {
      const label = ui.element('label', {class: 'slider'}, sliders);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: count - 1, 'aria-label': name}, label);
      const shown = ui.element('output', {class: 'num'}, label);
      input.oninput = () => set(Number(input.value));
      return () => { input.value = get(); shown.textContent = get(); };
    });
    const numbers = [ui.stat('output of this window'), ...data.labels.map(label => ui.stat(label))];
    return step => {
      inputs.forEach(show => show());
      [text(y[(step * P + p) * Q + q]), ...data.stats[step]].forEach((value, i) => numbers[i](value));
    };
  },
};
