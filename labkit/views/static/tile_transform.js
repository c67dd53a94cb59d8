// A tile in two lines of panels: pixels, their sums along columns, V and the filter; then U, the products M, their sums
// and the outputs. The cell of the step is filled; the cells that it adds are framed, each with its sign or factor. The
// pointer on any computed sum shows what it is made of.

const view = {
  start(ui, data) {
    const {panels, steps, stats, A, B} = data, [n, m] = A.shape;
    const BEGIN = 0, FILTER = 1, COLUMNS = 2, ROWS = 3, PRODUCTS = 4, OUT_COLUMNS = 5, OUT_ROWS = 6, HEAD = 22;
    const size = n > 4 ? 35 : 40, by = name => panels.find(panel => panel.name === name);
    let peek = null;   // a computed cell under the pointer: [stage, cell]

    if (data.kept.length > 1) ui.menu('tile', data.kept.map(({name}) => name), data, i => ({...data.kept[i], kept: data.kept}));

    const now = () => [steps[2 * ui.step], steps[2 * ui.step + 1]];
    const text = value => (Number(value.toFixed(Math.abs(value) < 99.995 ? 2 : 0)) || 0).toString().replace('-', '\u2212');
    function done(panel, cell) {
      const [stage, current] = now(), columns = panel.shape[1], rows = panel.shape[0];
      if (panel.stage !== stage) return panel.stage < stage;
      if (stage === COLUMNS || stage === OUT_COLUMNS) {
        const rank = i => i % columns * rows + Math.floor(i / columns);
        return rank(cell) <= rank(current);
      }
      return stage === BEGIN || stage === FILTER || stage === PRODUCTS || cell <= current;
    }
    // the terms of a sum: [panel, cell, factor]
    function terms([stage, cell]) {
      const found = [], matrix = stage < PRODUCTS ? B : A, wide = stage < PRODUCTS ? n : m;
      const add = (name, at, factor) => { if (factor) found.push([name, at, factor]); };
      const [row, column] = [Math.floor(cell / (stage === OUT_ROWS ? m : n)), cell % (stage === OUT_ROWS ? m : n)];
      for (let i = 0; i < n; i++) {
        if (stage === COLUMNS) add('d', i * n + column, matrix[i * wide + row]);
        if (stage === OUT_COLUMNS) add('M', i * n + column, matrix[i * wide + row]);
        if (stage === ROWS) add('column sums of d', row * n + i, matrix[i * wide + column]);
        if (stage === OUT_ROWS) add('column sums of M', row * n + i, matrix[i * wide + column]);
        if (stage !== ROWS && stage !== OUT_ROWS) continue;
        for (let j = 0; j < n; j++) add(stage === ROWS ? 'd' : 'M', i * n + j, matrix[i * wide + row] * matrix[j * wide + column]);
      }
      if (stage === PRODUCTS && peek) { add('U', cell, 1); add('V', cell, 1); }
      return found;
    }
    const sign = factor => Math.abs(factor) === 1 ? (factor < 0 ? '\u2212' : '+') : text(factor);

    const roles = {g: 'B', U: 'B', y: 'C'};
    for (const line of [['d', 'column sums of d', 'V', 'g'], ['U', 'M', 'column sums of M', 'y']]) {
      const row = ui.element('div', {class: 'row', style: 'flex-wrap:wrap;gap:8px 22px'}, ui.body);
      for (const name of line) {
        const panel = by(name), [rows, columns] = panel.shape, role = roles[name] ?? 'A';
        const width = Math.max(columns * size + 3, name.length * 8);
        const title = {d: 'd, pixels', g: 'g, filter', M: 'M = U \u00D7 V', y: 'y'}[name] ?? name;
        const canvas = ui.canvas({
          label: `${title}, at this step`, parent: ui.element('div', {style: `flex:0 1 ${width}px`}, row),
          maxWidth: all => Math.min(width, all), height: () => HEAD + rows * size + 3,
          paint(g) {
            const shown = peek ?? now(), sums = terms(shown);
            g.font = '600 13px system-ui, sans-serif';
            g.textAlign = 'left';
            g.fillStyle = ui.colour('fg');
            g.fillText(title, 1, 14);
            for (let i = 0; i < rows * columns; i++) {
              const [x, y] = [1.5 + i % columns * size, HEAD + Math.floor(i / columns) * size];
              const whole = shown[0] === FILTER || (shown[0] === PRODUCTS && !peek);
              const current = panel.stage === shown[0] && shown[0] !== BEGIN && (whole || i === shown[1]);
              g.fillStyle = ui.colour('cell');
              g.fillRect(x, y, size - 2, size - 2);
              if (!done(panel, i)) continue;
              g.fillStyle = current ? ui.colour('hot', 0.45) : ui.colour(role, 0.25);
              g.fillRect(x, y, size - 2, size - 2);
              const term = sums.find(([of, at]) => of === name && at === i);
              if (term) {
                g.strokeStyle = ui.colour('hot');
                g.lineWidth = 2;
                g.strokeRect(x + 1, y + 1, size - 4, size - 4);
                g.textAlign = 'left';
                g.fillStyle = ui.colour('fg');
                g.font = '700 10px system-ui, sans-serif';
                if (shown[0] !== PRODUCTS) g.fillText(sign(term[2]), x + 4, y + 11);
              }
              const written = text(panel.values[i]);
              g.textAlign = 'center';
              g.fillStyle = ui.colour('fg');
              g.font = `${Math.min(13, (size - 8) * 1.75 / written.length)}px system-ui, sans-serif`;
              g.fillText(written, x + size / 2 - 1, y + size / 2 + (term ? 9 : 4));
            }
          },
        });
        const at = event => [Math.floor((event.offsetX - 1.5) / size), Math.floor((event.offsetY - HEAD) / size)];
        canvas.addEventListener('pointermove', event => {
          const [column, row] = at(event), cell = row * columns + column;
          const inside = panel.stage >= COLUMNS && column >= 0 && column < columns && row >= 0 && row < rows;
          peek = inside && done(panel, cell) ? [panel.stage, cell] : null;
          ui.go(ui.step);
        });
        canvas.addEventListener('pointerleave', () => { peek = null; ui.go(ui.step); });
      }
    }
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['hot', 'what this step computes', 0.6], ['hot', 'what it is made of, with sign or factor', 'outline'],
      ['A', 'of pixels', 0.4], ['B', 'of the filter', 0.4], ['C', 'outputs', 0.4]]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};
